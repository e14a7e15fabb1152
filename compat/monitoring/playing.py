"""Plays the requests of monitoring clients, and finds the fields that they miss in the answers."""

from __future__ import annotations

import base64
import json
import urllib.request
from functools import reduce
from typing import Any
from urllib.parse import urlsplit

import pika

from compat.monitoring.calls import CALLS, NUMBER, Call
from compat.waiting import wait_until


def traffic(url: str) -> pika.BlockingConnection:
    """Publish, return, confirm, get, deliver, redeliver and acknowledge: all that is counted."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("watched", durable=True)
    channel.exchange_declare("fans", "fanout", durable=True)
    channel.queue_bind("watched", "fans")
    for _ in range(5):
        channel.basic_publish("fans", "", b"m", pika.BasicProperties(delivery_mode=2))
    try:
        channel.basic_publish("", "nowhere", b"m", mandatory=True)
    except pika.exceptions.UnroutableError:
        pass
    else:
        raise AssertionError("the message was not returned")
    channel.basic_reject(channel.basic_get("watched")[0].delivery_tag)
    channel.basic_ack(channel.basic_get("watched")[0].delivery_tag)
    got: list[int] = []
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume("watched", lambda _, method, *rest: got.append(method.delivery_tag))
    wait_until(lambda: got, pause=connection.process_data_events)
    return connection


def ask(url: str, path: str) -> Any:
    """Return an answer of the HTTP API; the URL has the login."""
    parts = urlsplit(url)
    login = base64.b64encode(f"{parts.username}:{parts.password}".encode()).decode()
    request = urllib.request.Request(
        f"http://{parts.hostname}:{parts.port}{path}", headers={"Authorization": f"Basic {login}"}
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)


def answers(url: str) -> dict[str, Any]:
    """Return the answer to each request of each client, by the path in its call."""
    node = ask(url, "/api/overview")["node"]
    paths = {call.path for calls in CALLS.values() for call in calls}
    return {path: ask(url, path.format(node=node)) for path in sorted(paths)}


def missed(call: Call, answer: Any) -> dict[str, Any]:
    """Return the fields with another type than the client reads, with their values.

    A missing field has the value None.
    """
    if isinstance(answer, list):
        [answer, *_] = [item for item in answer if call.name in ("", item["name"])]
    found = {field: _value_at(answer, field) for field in _fields_of(call)}
    return {field: value for field, value in found.items() if not _is_of_type(call, field, value)}


def _fields_of(call: Call) -> list[str]:
    return f"{call.numbers} {call.texts} {call.booleans} {call.lists}".split()


def _value_at(answer: Any, field: str) -> Any:
    """Return the value of a field, or None."""
    return reduce(lambda value, name: value.get(name) if isinstance(value, dict) else None, field.split("."), answer)


def _is_of_type(call: Call, field: str, value: Any) -> bool:
    if field in call.numbers.split():
        return isinstance(value, NUMBER) and not isinstance(value, bool)
    kind = str if field in call.texts.split() else bool if field in call.booleans.split() else list
    return isinstance(value, kind)
