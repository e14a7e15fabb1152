"""Arguments in every type that AMQP has are listed, exported, restored and worked with.

Clients choose the types of numbers by themselves: Node's amqplib and php-amqplib send the smallest integer.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from amqp_broker.amqp import fields
from amqp_broker.broker.exchanges.types import exchange_types
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.conformance import wire
from amqp_broker.management.api_sections import all_endpoints
from amqp_broker.management.documents.values import UNDEFINED
from amqp_broker.management.http.request import Request
from amqp_broker.management.metrics import exposition
from amqp_broker.settings.profiles import DEFAULT, PROFILES
from tests.management.asking import Desk
from tests.memory_journal import MemoryJournal
from tests.peer import Peer
from tests.properties.generators import VALUES
from tests.restarting import restarted

OLDER = [pytest.param(profile, marks=pytest.mark.verify) for profile in PROFILES if profile not in (DEFAULT, "4.3")]
# The arguments of queues, with a valid value of those that are texts.
QUEUE_ARGUMENTS: dict[str, str] = {
    "x-expires": "",
    "x-message-ttl": "",
    "x-dead-letter-exchange": "amq.fanout",
    "x-dead-letter-routing-key": "key",
    "x-dead-letter-strategy": "at-least-once",
    "x-max-length": "",
    "x-max-length-bytes": "",
    "x-max-in-memory-length": "",
    "x-max-in-memory-bytes": "",
    "x-max-priority": "",
    "x-overflow": "reject-publish",
    "x-queue-mode": "lazy",
    "x-queue-version": "",
    "x-queue-master-locator": "min-masters",
    "x-queue-leader-locator": "client-local",
    "x-single-active-consumer": "",
    "x-quorum-initial-group-size": "",
    "x-quorum-target-group-size": "",
    "x-delivery-limit": "",
    "x-consumer-timeout": "",
    "x-consumer-disconnected-timeout": "",
    "x-delayed-retry-type": "all",
    "x-delayed-retry-min": "",
    "x-delayed-retry-max": "",
    "x-max-age": "5m",
    "x-stream-max-segment-size-bytes": "",
    "x-stream-filter-size-bytes": "",
    "x-initial-cluster-size": "",
    "x-unknown": "text",
}
CONSUMER_ARGUMENTS: dict[str, str] = {
    "x-priority": "",
    "x-cancel-on-ha-failover": "",
    "x-consumer-timeout": "",
    "x-stream-offset": "first",
    "x-stream-filter": "text",
    "x-stream-match-unfiltered": "",
    "x-unknown": "text",
}
# Type of exchange, argument, and a valid text.
EXCHANGE_ARGUMENTS: tuple[tuple[str, str, str], ...] = (
    ("direct", "alternate-exchange", "amq.fanout"),
    ("x-consistent-hash", "hash-header", "text"),
    ("x-consistent-hash", "hash-property", "message_id"),
    ("x-recent-history", "x-recent-history-length", ""),
    ("x-modulus-hash", "shards-per-node", ""),
    ("direct", "x-unknown", "text"),
)
BINDING_ARGUMENTS: tuple[tuple[str, str, str], ...] = (
    ("amq.headers", "x-match", "any"),
    ("amq.headers", "text", "text"),
    ("amq.direct", "x-unknown", "text"),
)
# Where both are given the smaller number applies, so that each value meets a smaller and a larger one.
POLICY = {
    "expires": 3_600_000,
    "message-ttl": 3_600_000,
    "max-length": 4,
    "max-length-bytes": 100,
    "delivery-limit": 4,
    "overflow": "reject-publish",
    "dead-letter-exchange": "amq.fanout",
}
OPERATOR_POLICY = {"max-length": 6, "max-length-bytes": 126, "delivery-limit": 6, "message-ttl": 6}


def values(text: str) -> list[Any]:
    """Return values of each type of field, with `text` as one of the strings."""
    return [
        *(kind(5) for kind in (fields.Byte, fields.UnsignedByte, fields.Short, fields.UnsignedShort)),
        *(kind(5) for kind in (int, fields.UnsignedInt, fields.Long)),
        *(kind(-1) for kind in (fields.Byte, fields.Short, int, fields.Long)),
        *(fields.Byte(127), fields.Long(1 << 40), fields.Timestamp(5), fields.Timestamp((1 << 64) - 1)),
        *(5.0, fields.Float32(5.0), 1e308, True, False, None, fields.Decimal(0, 5), fields.Decimal(255, 1)),
        *(text or "5", (text or "5").encode(), "\udcff", b"\xff", "nonsense"),
        *([], [fields.Byte(5), "a", [fields.Short(5)]], {}, {"key": fields.Byte(5), "in": {"key": fields.Short(5)}}),
    ]


class Applicant:
    """A client that declares whatever it likes, and stays when it is refused."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.peer: Peer = desk.lab.connect()

    def takes(self, method: wire.Method, **arguments: Any) -> bool:
        """Send a method of which the broker's codec encodes the table; return whether it is taken."""
        table = arguments.pop("arguments")
        payload = wire.method_payload(method, arguments)
        assert payload.endswith(bytes(4)), "the table is the last field"
        self.peer.send_bytes(wire.frame(wire.METHOD, 1, payload[:-4] + fields.encode_table(table)))
        answer, _ = self.peer.next()
        if answer.name in method.valid_responses:
            return True
        if isinstance(answer, commands.Connection.Close):
            # RabbitMQ 4.3 refuses x-queue-master-locator so.
            assert "deprecated" in answer.reply_text, answer.reply_text
            self.peer = self.desk.lab.connect()
            return False
        assert isinstance(answer, commands.Channel.Close), answer
        assert answer.reply_code == 406, answer.reply_text
        self.peer.send(commands.Channel.CloseOk())
        self.peer.open_channel(1)
        return False


def durable_desk(profile: str) -> Desk:
    desk = Desk(compat=profile)
    desk.broker.journal = MemoryJournal()
    return desk


def declare_all(desk: Desk, given: dict[str, list[Any]], queue_types: tuple[str, ...]) -> None:
    """Declare a queue of each type with each value of each argument, and again what was taken."""
    client = Applicant(desk)
    for queue_type in queue_types:
        for argument, each in given.items():
            for number, value in enumerate(each):
                table = {"x-queue-type": queue_type, "x-dead-letter-exchange": "amq.fanout", argument: value}
                if queue_type == "stream" and argument != "x-dead-letter-exchange":
                    del table["x-dead-letter-exchange"]
                name = f"{queue_type} {argument} {number}"
                if client.takes(commands.Queue.Declare, queue=name, durable=True, arguments=table):
                    assert client.takes(commands.Queue.Declare, queue=name, durable=True, arguments=table), name


def consume_all(desk: Desk) -> None:
    client = Applicant(desk)
    for queue_type in ("classic", "quorum", "stream"):
        queue = f"{queue_type} consumed"
        table = {"x-queue-type": queue_type}
        assert client.takes(commands.Queue.Declare, queue=queue, durable=True, arguments=table)
        for argument, text in CONSUMER_ARGUMENTS.items():
            for value in values(text):
                client.peer.call(commands.Basic.Qos(prefetch_count=10))
                client.takes(commands.Basic.Consume, queue=queue, no_local=False, arguments={argument: value})


def bind_all(desk: Desk) -> None:
    client = Applicant(desk)
    assert client.takes(commands.Queue.Declare, queue="bound", durable=True, arguments={})
    for kind, argument, text in EXCHANGE_ARGUMENTS:
        for number, value in enumerate(values(text)):
            name = f"{kind} {argument} {number}"
            exchange = {"exchange": name, "exchange_type": kind, "durable": True, "arguments": {argument: value}}
            if kind in exchange_types(desk.broker.profile) and client.takes(commands.Exchange.Declare, **exchange):
                assert client.takes(commands.Exchange.Declare, **exchange), name
    for exchange_name, argument, text in BINDING_ARGUMENTS:
        for value in values(text):
            client.takes(commands.Queue.Bind, queue="bound", exchange=exchange_name, arguments={argument: value})


# Endpoints that send as long as the client stays, or wait, and those that report on the node.
NOT_ASKED = ("/updates", "/capture", "/events", "/health", "/aliveness-test")
LISTS: tuple[dict[str, str], ...] = (
    *({}, {"page": "1", "page_size": "500", "sort": "delivery_limit"}, {"columns": "name,arguments,delivery_limit"}),
    {"disable_stats": "true", "enable_queue_totals": "true"},
)


def look_at_everything(desk: Desk) -> None:
    """Ask every endpoint that lists objects, or shows one, and the metrics. Each answer is JSON."""
    desk.lab.drain()
    for endpoint in all_endpoints():
        if endpoint.method != "GET" or any(part in endpoint.path for part in NOT_ASKED):
            continue
        path = endpoint.path.replace("{vhost}", "%2F").replace("{user}", "guest")
        if "{" in path:
            continue
        for query in LISTS:
            status, value = desk.get(path, **query)
            assert status < 500, (path, query, value)
    vhost = desk.broker.vhosts["/"]
    for name in vhost.queues:
        for path in (f"/api/queues/%2F/{name}", f"/api/queues/%2F/{name}/bindings"):
            assert desk.get(path.replace(" ", "%20"))[0] == 200, path
    for name in filter(None, vhost.exchanges):
        assert desk.get(f"/api/exchanges/%2F/{name}".replace(" ", "%20"))[0] == 200, name
    request = Request(desk.broker, desk.node, desk.user)
    for text in (exposition.summed(request), exposition.per_object(request)):
        assert finished(text)


def shown(desk: Desk) -> dict[str, tuple[Any, Any]]:
    """Return the arguments and the delivery limit of each queue as they are listed."""
    rows = desk.get("/api/queues")[1]
    return {row["name"]: (row["arguments"], row.get("delivery_limit")) for row in rows}


def arguments_of(desk: Desk) -> dict[str, Any]:
    """Return the arguments of each queue. A time or a text that JSON has as another type may mean something else."""
    # Infinity is null in JSON, and void after an import.
    return {
        name: {key: None if value == UNDEFINED else value for key, value in arguments.items()}
        for name, (arguments, _) in shown(desk).items()
    }


def after_restart(desk: Desk) -> Desk:
    again = Desk(compat=desk.broker.settings.compat)
    again.lab = restarted(desk.lab)
    again.broker = again.lab.broker
    again.user = again.broker.users["guest"]
    return again


def imported(desk: Desk) -> Desk:
    """Return a new broker that has the definitions of this one."""
    document = desk.get("/api/definitions")[1]
    other = durable_desk(desk.broker.settings.compat)
    assert other.ask("POST", "/api/definitions", document) == (204, None)
    again = other.get("/api/definitions")[1]
    for kind in ("queues", "exchanges", "bindings"):
        # Two bindings whose arguments differ only in their types are one in JSON.
        assert {*map(str, again[kind])} == {*map(str, document[kind])}, kind
    return other


def work_with(desk: Desk) -> None:
    """Publish to each queue, get, return, give up, and get again."""
    peer = desk.lab.connect()
    for name, queue in list(desk.broker.vhosts["/"].queues.items()):
        peer.publish(name, b"first", message_id="5", headers={"text": "text"}, priority=3)
        if queue.type == "stream":
            continue
        for requeue in (True, True, False):
            peer.send(commands.Basic.Get(queue=name))
            answer, _ = peer.next()
            if isinstance(answer, commands.Basic.GetOk):
                peer.next(), peer.next()
                peer.send(commands.Basic.Reject(answer.delivery_tag, requeue))
            elif isinstance(answer, commands.Channel.Close):
                assert "single active consumer" in answer.reply_text, answer.reply_text
                peer.send(commands.Channel.CloseOk())
                peer.open_channel(1)
    assert not peer.is_dropped


@pytest.mark.parametrize("profile", [DEFAULT, "4.3", *OLDER])
def test_arguments_that_are_taken_are_listed_exported_and_restored(profile: str) -> None:
    desk = durable_desk(profile)
    given_values = {argument: values(text) for argument, text in QUEUE_ARGUMENTS.items()}
    declare_all(desk, given_values, ("classic", "quorum", "stream"))
    consume_all(desk)
    bind_all(desk)
    look_at_everything(desk)
    listed = shown(desk)
    assert len(listed) > 500, "queues of all three types"
    assert shown(after_restart(desk)) == listed
    assert arguments_of(imported(desk)) == arguments_of(desk)
    for kind, definition in (("policies", POLICY), ("operator-policies", OPERATOR_POLICY)):
        body = {"pattern": "", "definition": definition, "apply-to": "queues"}
        assert desk.ask("PUT", f"/api/{kind}/%2F/p", body)[0] in (201, 204), kind
    work_with(desk)
    look_at_everything(desk)


@given(argument=st.sampled_from(sorted(QUEUE_ARGUMENTS)), value=VALUES, profile=st.sampled_from(sorted(PROFILES)))
def test_any_value_that_a_declaration_takes_is_listed(argument: str, value: Any, profile: str) -> None:
    desk = durable_desk(profile)
    declare_all(desk, {argument: [value]}, ("classic", "quorum", "stream"))
    listed = shown(desk)
    assert shown(after_restart(desk)) == listed
    assert arguments_of(imported(desk)) == arguments_of(desk)
    work_with(desk)
    assert desk.get("/api/queues/detailed")[0] == 200


@pytest.mark.parametrize("kind", [fields.Byte, fields.UnsignedByte, fields.Short, fields.UnsignedInt, fields.Long])
def test_a_delivery_limit_is_listed_as_a_number_whatever_its_type(kind: type[int]) -> None:
    desk = durable_desk("4.3")
    declare_all(desk, {"x-delivery-limit": [kind(5)]}, ("quorum",))
    for path in ("/api/queues", "/api/queues/%2F", "/api/queues/detailed"):
        assert [row["delivery_limit"] for row in desk.get(path)[1]] == [5]
