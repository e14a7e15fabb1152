"""The requests of monitoring clients: each field that they read is there, with its type."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Iterator
from functools import reduce
from typing import Any

import pika
import pytest

from amqp_broker.settings.profiles import PROFILES
from compat.brokers import AmqpBroker
from compat.monitoring.calls import CALLS, NUMBER, Call
from compat.waiting import wait_until

EACH_CALL = [pytest.param(call, id=f"{client} {call.path}") for client, calls in CALLS.items() for call in calls]


@pytest.fixture(scope="module", params=sorted(PROFILES))
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AmqpBroker]:
    """Provide a broker with traffic of each kind that is counted."""
    broker = AmqpBroker(tmp_path_factory.mktemp("amqp-broker"), profile=request.param)
    with broker.running():
        connection = traffic(broker)
        yield broker
        connection.close()


def traffic(broker: AmqpBroker) -> pika.BlockingConnection:
    """Publish, return, confirm, get, deliver, redeliver and acknowledge."""
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("watched", durable=True)
    channel.exchange_declare("fans", "fanout", durable=True)
    channel.queue_bind("watched", "fans")
    for _ in range(5):
        channel.basic_publish("fans", "", b"m", pika.BasicProperties(delivery_mode=2))
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("", "nowhere", b"m", mandatory=True)
    channel.basic_reject(channel.basic_get("watched")[0].delivery_tag)
    channel.basic_ack(channel.basic_get("watched")[0].delivery_tag)
    got: list[int] = []
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume("watched", lambda _, method, *rest: got.append(method.delivery_tag))
    wait_until(lambda: got, pause=connection.process_data_events)
    return connection


def ask(broker: AmqpBroker, path: str) -> Any:
    login = base64.b64encode(b"guest:guest").decode()
    url = f"http://127.0.0.1:{broker.management_port}{path}"
    request = urllib.request.Request(url, headers={"Authorization": f"Basic {login}"})
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)


@pytest.mark.parametrize("call", EACH_CALL)
def test_a_monitoring_client_finds_each_field_with_its_type(broker: AmqpBroker, call: Call) -> None:
    node = ask(broker, "/api/overview")["node"]
    answer = ask(broker, call.path.format(node=node))
    if isinstance(answer, list):
        [answer, *_] = [item for item in answer if call.name in ("", item["name"])]
    found = {field: value_at(answer, field) for field in fields_of(call)}
    assert {field: value for field, value in found.items() if not is_of_type(call, field, value)} == {}


def fields_of(call: Call) -> list[str]:
    return f"{call.numbers} {call.texts} {call.booleans} {call.lists}".split()


def value_at(answer: Any, field: str) -> Any:
    """Return the value of a field, or None."""
    return reduce(lambda value, name: value.get(name) if isinstance(value, dict) else None, field.split("."), answer)


def is_of_type(call: Call, field: str, value: Any) -> bool:
    if field in call.numbers.split():
        return isinstance(value, NUMBER) and not isinstance(value, bool)
    kind = str if field in call.texts.split() else bool if field in call.booleans.split() else list
    return isinstance(value, kind)
