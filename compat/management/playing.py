"""Asks the questions of a broker, amqp-broker or RabbitMQ, and makes the answers comparable."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import quote

import pika
import pika.exceptions

from compat.management.comparing import neutral
from compat.management.http_asking import Api, Reply, delete, get, titled
from compat.management.populating import connect, filled
from compat.management.questions import PATHS, REASONS, STEPS, WRONG_METHODS
from compat.oracle.comparing import is_ordered
from compat.oracle.suite import Answer
from compat.waiting import wait_until

# References and processes of Erlang, in a text.
_OF_RUN = re.compile(r"#Ref<[\d.]+>|<\d+\.\d+\.\d+>")


def play(api: Api, wait: Callable[[Api], object] = lambda api: None) -> dict[str, Answer]:
    """Return all answers of a newly started broker by `area/question`; `wait` waits for its statistics.

    The broker counts requests, so they are sent in a fixed order.
    """
    areas: dict[str, dict[str, Answer]] = {}
    with filled(api):
        wait(api)
        areas["answers"] = tell(api)
    with filled(api):
        areas["changing"] = change(api)
        areas["methods"] = refuse(api)
    areas["closing"] = close(api)
    return {f"{area}/{question}": answer for area, answers in areas.items() for question, answer in answers.items()}


def tell(api: Api) -> dict[str, Answer]:
    """Return the answers of a filled broker to each of `PATHS`."""
    names = {"node": api.node, "connection": api.get("connections")[0]["name"]}
    quoted = {key: quote(name, safe="") for key, name in names.items()}
    return {path: neutral(api.ask(get(path.format(**quoted))).value, names["node"], is_ordered(path)) for path in PATHS}


def change(api: Api) -> dict[str, Answer]:
    """Return the answers to each of `STEPS`, in order."""
    answers = {title: answer(api.ask(question)) for title, question in titled(STEPS).items()}
    # Some reasons are terms of a node that was started for the questions.
    text = json.dumps(answers).replace(api.node, "<node>")
    neutralized: dict[str, Answer] = json.loads(_OF_RUN.sub("<term>", text))
    return neutralized


def refuse(api: Api) -> dict[str, Answer]:
    """Return the answers to methods that a resource does not have."""
    return {title: answer(api.ask(question)) for title, question in titled(WRONG_METHODS).items()}


def answer(reply: Reply) -> dict[str, Answer]:
    """Return the compared parts of a reply: status, value, location and allowed methods."""
    headers = {name: text for name, text in reply.headers.items() if name in ("location", "allow")}
    return {"status": reply.status, "value": reply.value, **headers}


def close(api: Api) -> dict[str, Answer]:
    """Return the close that a client receives when its connection is closed over HTTP, for each of `REASONS`."""
    return {title: _closed(api, title, reason) for title, reason in REASONS.items()}


def _closed(api: Api, title: str, reason: str | None) -> Answer:
    connection = connect(api.broker, f"closed {title}")
    names: list[str] = []

    def is_listed() -> bool:
        rows = api.get("connections")
        names[:] = [row["name"] for row in rows if row.get("user_provided_name") == f"closed {title}"]
        return bool(names) and api.ask(get(f"connections/{quote(names[0], safe='')}")).status == 200

    # RabbitMQ lists a connection once it has collected its statistics.
    wait_until(is_listed)
    headers = {} if reason is None else {"X-Reason": reason}
    status = api.ask(delete(f"connections/{quote(names[0], safe='')}"), **headers).status
    try:
        connection.process_data_events(10)
    except pika.exceptions.ConnectionClosedByBroker as closed:
        return {"status": status, "code": closed.reply_code, "text": closed.reply_text}
    return {"status": status}
