"""Requests that schemathesis generates from the API's own description.

The broker must answer each in JSON without an internal error, and an AMQP client must be undisturbed. Half of the
requests use names of existing objects, since most others only find nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pika
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok

from compat.brokers import AmqpBroker, free_port

EXAMPLES: Final = 5
TIMEOUT_S: Final = 10.0
# Existing objects, by the name of the path parameter.
NAMES: Final = {
    "vhost": ["/", "other"],
    "queue": ["q", "quorum", "stream"],
    "name": ["q", "e", "amq.default", "amq.topic", "p", "max-queues", "max-channels", "quorum_queue"],
    "user": ["alice"],
    "exchange": ["amq.topic"],
    "component": ["federation-upstream", "policy", "vhost-limits", "operator_policy", "shovel"],
    "source": ["e", "amq.topic"],
    "destination": ["q", "e"],
    "protocol": ["amqp", "mqtt"],
    "port": ["5672", "-1"],
    "within": ["1", "-1"],
    "number": ["1", "99", "-1"],
    "unit": ["weeks"],
}
# These would close or block the client.
NODE: Final = ("stop", "stop-app", "suspend-listeners", "memory-limit", "disk-free-limit")
LEFT_OUT: Final = (
    *("/_broker/reset", "/_broker/events", "/_broker/faults", "/api/connections"),
    # The response of this endpoint never ends.
    "/_broker/capture",
    *(f"/_broker/{verb}" for verb in NODE),
)


class Beside:
    """An AMQP client that must be undisturbed."""

    def __init__(self, broker: AmqpBroker) -> None:
        self.connection = pika.BlockingConnection(pika.URLParameters(f"{broker.url.rstrip('/')}/beside"))
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()
        self.channel.queue_declare("beside", durable=True)

    def work(self) -> None:
        self.channel.basic_publish("", "beside", b"x", pika.BasicProperties(delivery_mode=2), mandatory=True)
        method, _, body = self.channel.basic_get("beside", auto_ack=True)
        assert method is not None
        assert body == b"x"


class Target:
    """A broker with objects of every kind, and its API description."""

    def __init__(self, broker: AmqpBroker, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.schema = schemathesis.openapi.from_url(f"{self.url}/_broker/openapi.json")
        for vhost in ("other", "beside"):
            self.ask("PUT", f"/api/vhosts/{vhost}")
        # A user whose name the requests do not contain.
        self.ask("PUT", "/api/users/tester", {"password": "tester", "tags": "administrator"})
        self.credentials = ("tester", "tester")
        for vhost in ("%2F", "other"):
            self.ask("PUT", f"/api/permissions/{vhost}/tester", {"configure": ".*", "write": ".*", "read": ".*"})
        self.ask("PUT", "/api/users/alice", {"password": "alice", "tags": ""})
        self.beside = Beside(broker)
        self.declare(broker)

    credentials = ("guest", "guest")

    def ask(self, method: str, path: str, body: Any = None) -> None:
        import requests

        answer = requests.request(method, self.url + path, json=body, auth=self.credentials, timeout=TIMEOUT_S)
        assert answer.status_code < 300, answer.text

    def declare(self, broker: AmqpBroker) -> None:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.exchange_declare("e", "topic")
        for name, kind in (("q", "classic"), ("quorum", "quorum"), ("stream", "stream")):
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": kind})
            channel.queue_bind(name, "e", "#")
            for _ in range(10):
                channel.basic_publish("", name, b"x" * 100, pika.BasicProperties(delivery_mode=2, headers={"a": 1}))
        connection.close()

    def operations(self) -> Iterator[Any]:
        for result in self.schema.get_all_operations():
            assert isinstance(result, Ok), result
            operation = result.ok()
            if not operation.path.startswith(LEFT_OUT):
                yield operation

    def check(self, case: Any) -> None:
        if "timeout_s" in (case.query or {}):
            # The request itself says how long it waits.
            case.query["timeout_s"] = 0.1
        response = case.call(base_url=self.url, auth=self.credentials, timeout=TIMEOUT_S)
        status, text = response.status_code, response.text
        where = f"{case.method} {case.formatted_path} {case.body!r}: {status} {text[:500]}"
        assert status < 500 or (status == 503 and "/health" in case.path), where
        # If its user could not log in, no more requests would be tested.
        assert "Not_Authorized" not in text or case.path in ("/api/login", "/_broker/authenticate"), where
        if text:
            json.loads(text)
        # As in RabbitMQ, 405 and 415 have no body.
        if status >= 400 and status not in (405, 415, 503):
            assert json.loads(text)["reason"], where


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    port = free_port()
    broker = AmqpBroker(tmp_path_factory.mktemp("broker"), options=("--management-port", str(port)))
    broker.start()
    yield Target(broker, port)
    broker.kill()


def known(parts: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return the path with names of existing objects."""
    return st.one_of(
        st.just(parts),
        st.fixed_dictionaries({name: st.sampled_from(NAMES.get(name, [value])) for name, value in parts.items()}),
    )


def test_no_request_is_an_internal_error(target: Target) -> None:
    count = 0
    for operation in target.operations():

        @seed(1)
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), data=st.data())
        def ask(case: Any, data: Any) -> None:
            if case.path_parameters:
                case.path_parameters = data.draw(known(dict(case.path_parameters)))
            target.check(case)

        ask()
        target.beside.work()
        count += 1
    assert count > 100
