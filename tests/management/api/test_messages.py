from __future__ import annotations

from typing import Any

import msgspec
import pytest

from amqp_broker.broker.admin.access import Permission, TopicPermission
from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.broker.scheduling.portions import Steps, finished
from amqp_broker.management.api import messages
from amqp_broker.management.http import json
from amqp_broker.management.http.request import Request
from tests.broker_parts import CollectingConsumer, push
from tests.management.asking import Desk

PUBLISH = "/api/exchanges/%2F/amq.default/publish"
GET = "/api/queues/%2F/q/get"
TEXT = {"routing_key": "q", "payload": "x", "payload_encoding": "string", "properties": {}}


@pytest.fixture
def desk() -> Desk:
    return Desk()


def declare(desk: Desk, name: str = "q", **arguments: Any) -> Queue:
    table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return desk.broker.vhosts["/"].declare_queue(QueueDeclaration(name, table, is_durable=True))


def publish(desk: Desk, payload: str = "x", path: str = PUBLISH, **given: Any) -> tuple[int, Any]:
    return desk.ask("POST", path, {**TEXT, "payload": payload, **given})


def get(desk: Desk, ackmode: str, count: Any = 100, **more: Any) -> Any:
    status, messages = desk.ask("POST", GET, {"ackmode": ackmode, "count": count, "encoding": "auto", **more})
    assert status == 200, messages
    return messages


def payloads(messages: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    return [(message["payload"], message["redelivered"]) for message in messages]


def test_a_message_reaches_a_consumer(desk: Desk) -> None:
    collector = CollectingConsumer(declare(desk)).start()
    assert publish(desk, "dHdv", payload_encoding="base64") == (200, {"routed": True})
    assert collector.bodies == [b"two"]


def test_a_message_without_a_queue_is_not_routed(desk: Desk) -> None:
    assert publish(desk) == (200, {"routed": False})


def test_properties_are_returned_unchanged(desk: Desk) -> None:
    declare(desk)
    properties = {
        "headers": {"a": 1, "b": "x", "c": [1, "y"], "d": {"e": True}, "f": 1.5, "g": 2**40},
        "content_type": "text/plain",
        "content_encoding": "gzip",
        "delivery_mode": 2,
        "priority": 3,
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": "600000",
        "message_id": "i",
        "timestamp": 1_700_000_000,
        "type": "t",
        "user_id": "guest",
        "app_id": "app",
        "cluster_id": "k",
    }
    publish(desk, properties=properties)
    (message,) = get(desk, "ack_requeue_false")
    assert message["properties"] == properties
    assert message["message_count"] == 0


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"payload": 5}, "payload_not_string"),
        ({"payload_encoding": "hex"}, ["unsupported_encoding", "hex"]),
        ({"payload_encoding": ["string"]}, ["unsupported_encoding", ["string"]]),
        ({"payload": "!!", "payload_encoding": "base64"}, ["not_base64", "!!"]),
        ({"routing_key": 5}, "routing_key must be a string of at most 255 octets"),
        ({"routing_key": "k" * 256}, "routing_key must be a string of at most 255 octets"),
        ({"properties": []}, "properties must be an object"),
        ({"properties": {"priority": "7"}}, ["not_int", "priority"]),
        ({"properties": {"priority": 256}}, "priority must be from 0 to 255, actually was 256"),
        ({"properties": {"timestamp": -1}}, f"timestamp must be from 0 to {2**64 - 1}, actually was -1"),
        ({"properties": {"delivery_mode": True}}, ["not_int", "delivery_mode"]),
        ({"properties": {"expiration": 5}}, ["not_string", "expiration"]),
        ({"properties": {"type": "t" * 256}}, "type is longer than 255 octets"),
        ({"properties": {"headers": "x"}}, "headers must be an object"),
        ({"properties": {"headers": {"a": [None]}}}, "null_not_allowed"),
        ({"properties": {"headers": {"a": 2**64}}}, f"argument 'a' is {2**64}, which 64 bits do not hold"),
        ({"properties": {"expiration": "x"}}, "406 PRECONDITION_FAILED - invalid expiration 'x': no_integer"),
        (
            {"properties": {"user_id": "alice"}},
            "406 PRECONDITION_FAILED - user_id property set to 'alice' but authenticated user was 'guest'",
        ),
        (
            {"properties": {"reply_to": "amq.rabbitmq.reply-to"}},
            "406 PRECONDITION_FAILED - fast reply consumer does not exist",
        ),
    ],
)
def test_an_invalid_message_is_refused(desk: Desk, given: Any, reason: Any) -> None:
    queue = declare(desk)
    assert publish(desk, **given) == (400, reason)
    assert queue.ready_count == 0


def test_a_full_queue_refuses_publishes_over_http(desk: Desk) -> None:
    declare(desk, max_length=1, overflow="reject-publish")
    publish(desk)
    assert publish(desk) == (400, "rejected Unable to publish message. Check queue limits.")


def test_permissions_apply_as_over_amqp(desk: Desk) -> None:
    vhost, broker, user = desk.broker.vhosts["/"], desk.broker, desk.user
    vhost.declare_exchange(ExchangeDeclaration("inner", "fanout", {}, is_durable=True, is_internal=True))
    assert publish(desk, path="/api/exchanges/%2F/inner/publish") == (
        400,
        "403 ACCESS_REFUSED - cannot publish to internal exchange 'inner' in vhost '/'",
    )
    broker.users.set_topic_permission(user, "/", "amq.topic", TopicPermission(write="^a"))
    status, reason = publish(desk, path="/api/exchanges/%2F/amq.topic/publish")
    assert (status, reason.split(" in exchange")[0]) == (400, "403 ACCESS_REFUSED - write access to topic 'q'")
    broker.users.set_permission(user, "/", Permission(write="^$", read="^$"))
    assert publish(desk)[1].startswith("403 ACCESS_REFUSED - write access to exchange 'amq.default'")
    declare(desk)
    assert desk.ask("POST", GET, {"ackmode": "ack_requeue_true", "count": 1, "encoding": "auto"})[0] == 401
    assert desk.ask("DELETE", "/api/queues/%2F/q/contents")[0] == 401
    broker.users.clear_permission(user, "/")
    assert publish(desk) == (401, "Access refused.")


def test_cc_and_bcc_are_routed_and_bcc_is_removed(desk: Desk) -> None:
    declare(desk)
    declare(desk, "blind")
    publish(desk, routing_key="none", properties={"headers": {"CC": ["q"], "BCC": ["blind"]}})
    assert get(desk, "ack_requeue_false")[0]["properties"]["headers"] == {"CC": ["q"]}
    assert desk.broker.vhosts["/"].queues["blind"].ready_count == 1


def test_the_expiration_of_a_message_applies(desk: Desk) -> None:
    queue = declare(desk)
    publish(desk, properties={"expiration": "10"})
    desk.broker.tick(desk.broker.now + 11)
    assert queue.ready_count == 0


@pytest.mark.parametrize("ackmode", ["ack_requeue_true", "reject_requeue_true"])
def test_a_requeued_message_keeps_its_place_and_is_redelivered(desk: Desk, ackmode: str) -> None:
    queue = declare(desk)
    for payload in ("one", "two", "three"):
        publish(desk, payload)
    assert payloads(get(desk, ackmode, 2)) == [("one", False), ("two", False)]
    assert (queue.ready_count, queue.unacked_count) == (3, 0)
    assert payloads(get(desk, "ack_requeue_false")) == [("one", True), ("two", True), ("three", False)]


def test_a_rejected_message_is_dead_lettered(desk: Desk) -> None:
    declare(desk, dead_letter_exchange="", dead_letter_routing_key="dead")
    dead = declare(desk, "dead")
    publish(desk)
    assert len(get(desk, "reject_requeue_false")) == 1
    assert dead.ready_count == 1
    assert desk.broker.vhosts["/"].queues["q"].unacked_count == 0


def test_a_requeued_message_may_go_to_a_consumer(desk: Desk) -> None:
    queue = declare(desk)
    publish(desk)
    get(desk, "ack_requeue_true")
    collector = CollectingConsumer(queue).start()
    assert [delivery.redelivered for delivery in collector.taken] == [True]


def test_a_quorum_queue_counts_requeued_messages(desk: Desk) -> None:
    declare(desk, queue_type="quorum")
    publish(desk)
    counts = [get(desk, "ack_requeue_true")[0]["properties"] for _ in range(3)]
    assert [properties and properties["headers"]["x-delivery-count"] for properties in counts] == [[], 1, 2]


@pytest.mark.parametrize(
    ("octets", "shown"),
    [
        (b"\xc3\xa9t\xc3\xa9", ("ét", "string")),
        (b"\xff\0\xff\0", ("/wD/", "base64")),
        (b"a\xc3\xa9\xc3\xa9", ("aé", "string")),
        (b"", ("", "string")),
    ],
)
def test_payloads_are_text_if_they_are_utf_8(desk: Desk, octets: bytes, shown: tuple[str, str]) -> None:
    import base64

    declare(desk)
    publish(desk, base64.b64encode(octets).decode(), payload_encoding="base64")
    (message,) = get(desk, "ack_requeue_false", truncate=3)
    assert (message["payload"], message["payload_encoding"]) == shown
    assert message["payload_bytes"] == len(octets)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"ackmode": "x"}, "Invalid ackmode value: x. Valid values are: ack_requeue_true"),
        ({"ackmode": []}, "Invalid ackmode value: []. Valid values are: ack_requeue_true"),
        ({"count": "x"}, ["not_integer", "x"]),
        ({"count": 1.5}, ["not_integer", 1.5]),
        ({"encoding": "hex"}, "Unsupported encoding. Please use auto or base64."),
        ({"encoding": {}}, "Unsupported encoding. Please use auto or base64."),
        ({"truncate": "x"}, ["not_integer", "x"]),
        ({"truncate": -1}, "truncate must not be negative"),
    ],
)
def test_an_invalid_get_takes_no_messages(desk: Desk, given: Any, reason: Any) -> None:
    queue = declare(desk)
    publish(desk)
    status, said = desk.ask("POST", GET, {"ackmode": "ack_requeue_false", "count": 1, "encoding": "auto", **given})
    assert status == 400
    assert said == reason or (isinstance(reason, str) and said.startswith(reason))
    assert queue.ready_count == 1


def test_getting_from_and_purging_streams_are_refused(desk: Desk) -> None:
    declare(desk, queue_type="stream")
    body = {"ackmode": "ack_requeue_true", "count": 1, "encoding": "auto"}
    assert desk.ask("POST", GET, body) == (
        400,
        "540 basic.get not supported by stream queues queue 'q' in vhost '/'",
    )
    assert desk.ask("DELETE", "/api/queues/%2F/q/contents") == (
        400,
        "queue.purge not supported by stream queues queue 'q' in vhost '/'",
    )


def test_a_queue_is_purged(desk: Desk) -> None:
    queue = declare(desk)
    publish(desk)
    assert desk.ask("DELETE", "/api/queues/%2F/q/contents")[0] == 204
    assert queue.ready_count == 0
    assert desk.ask("DELETE", "/api/queues/%2F/none/contents") == (404, "Not Found")


def test_a_trace_has_messages_published_and_got_over_http(desk: Desk) -> None:
    vhost = desk.broker.vhosts["/"]
    traced = declare(desk, "traced")
    for key in ("publish.#", "deliver.#"):
        vhost.bind(vhost.exchanges["amq.rabbitmq.trace"], traced, key, {})
    declare(desk)
    vhost.tracing.start()
    publish(desk)
    get(desk, "ack_requeue_true")
    assert [message.routing_key for message in traced.messages()] == ["publish.", "deliver.q"]


def test_header_values_without_a_json_type_are_approximated(desk: Desk) -> None:
    from amqp_broker.amqp import fields
    from amqp_broker.amqp.message import Address, Message, Properties

    queue = declare(desk)
    headers = {"octets": b"\xff", "nan": float("nan"), "time": fields.Timestamp(5), "odd": "\udcff", "no": None}
    queue.push(Message.build(Address("\udcff", "\udcfe"), Properties(headers=headers), b"x"))
    (message,) = get(desk, "ack_requeue_false")
    assert message["properties"]["headers"] == {"octets": "�", "nan": None, "time": 5, "odd": "�", "no": "undefined"}


def getting(desk: Desk, ackmode: str) -> Steps[Any]:
    """The steps of a request for all messages: one for each message, and one for each that is settled."""
    body = msgspec.json.encode({"ackmode": ackmode, "count": -1, "encoding": "auto"})
    return messages.get(Request(desk.broker, desk.node, desk.user, "POST", {"vhost": "/", "queue": "q"}, body=body))


@pytest.mark.parametrize("arguments", [{}, {"queue_type": "quorum"}, {"max_priority": 3}])
def test_a_request_that_is_given_up_leaves_no_message_unacked(desk: Desk, arguments: dict[str, Any]) -> None:
    queue = declare(desk, **arguments)
    push(queue, b"one", b"two", b"three")
    steps = getting(desk, "ack_requeue_true")
    next(steps)
    next(steps)
    assert (queue.ready_count, queue.unacked_count) == (1, 2)
    steps.close()
    assert [message.body for message in queue.messages()] == [b"one", b"two", b"three"]
    assert queue.unacked_count == 0


def test_a_consumer_that_came_meanwhile_takes_each_requeued_message_in_order(desk: Desk) -> None:
    queue = declare(desk)
    push(queue, b"one", b"two", b"three")
    steps = getting(desk, "ack_requeue_true")
    for _ in range(3):
        next(steps)
    collector = CollectingConsumer(queue).start()
    assert collector.bodies == []
    next(steps)
    assert collector.bodies == [b"one"]
    assert len(finished(steps)) == 3
    assert collector.bodies == [b"one", b"two", b"three"]


def test_before_4_0_requeued_messages_come_back_as_those_of_a_lost_channel() -> None:
    desk = Desk(compat="3.13")
    queue = declare(desk, queue_type="quorum")
    push(queue, *(b"%d" % number for number in range(1, 13)))
    get(desk, "ack_requeue_true", 11)
    assert [message.body for message in queue.messages()] == [
        b"1",
        b"10",
        b"11",
        *(b"%d" % n for n in range(2, 10)),
        b"12",
    ]
    collector = CollectingConsumer(queue).start()
    assert [delivery.redelivered for delivery in collector.taken] == [True] * 11 + [False]


def test_before_4_0_messages_that_the_api_rejects_go_behind_all_others() -> None:
    desk = Desk(compat="3.13")
    queue = declare(desk, queue_type="quorum")
    push(queue, b"one", b"two", b"three")
    get(desk, "reject_requeue_true", 2)
    assert [message.body for message in queue.messages()] == [b"three", b"one", b"two"]


def test_a_consumer_waits_until_all_messages_of_the_api_are_back_before_4_0() -> None:
    desk = Desk(compat="3.13")
    queue = declare(desk)
    push(queue, b"one", b"two", b"three")
    steps = getting(desk, "ack_requeue_true")
    for _ in range(3):
        next(steps)
    collector = CollectingConsumer(queue).start()
    next(steps)
    assert collector.bodies == []
    steps.close()
    assert collector.bodies == [b"one", b"two", b"three"]
    assert not queue.holds


def test_messages_that_arrive_meanwhile_are_not_got(desk: Desk) -> None:
    queue = declare(desk)
    push(queue, b"one", b"two")
    steps = getting(desk, "ack_requeue_false")
    next(steps)
    push(queue, b"late")
    assert [row["payload"] for row in finished(steps)] == ["one", "two"]
    assert queue.ready_count == 1


@pytest.mark.parametrize("ackmode", ["ack_requeue_true", "ack_requeue_false", "reject_requeue_true"])
def test_getting_ends_with_its_queue(desk: Desk, ackmode: str) -> None:
    queue = declare(desk)
    push(queue, b"one", b"two")
    steps = getting(desk, ackmode)
    next(steps)
    desk.broker.vhosts["/"].remove_queue(queue)
    assert [row["payload"] for row in finished(steps)] == ["one"]
    assert queue.message_count == 0


@pytest.mark.parametrize("depth", [65, 500, 1000, 10_000])
def test_headers_of_any_depth_are_published_and_got(desk: Desk, depth: int) -> None:
    declare(desk)
    headers = b'{"a":' * depth + b"[1]" + b"}" * depth
    new = b'{"routing_key":"q","payload":"x","payload_encoding":"string","properties":{"headers":%s}}' % headers
    assert desk.ask("POST", "/api/exchanges/%2F/amq.default/publish", new) == (200, {"routed": True})
    asked = Request(
        desk.broker,
        desk.node,
        desk.user,
        path={"vhost": "/", "queue": "q"},
        body=b'{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}',
    )
    assert b'"headers":' + headers in json.encode(finished(messages.get(asked)))


def test_a_body_nested_too_deeply_is_refused_with_the_reason(desk: Desk) -> None:
    body = b'{"count":' + b"[" * 200_000
    reason = "the values are nested deeper than 100000 levels"
    declare(desk)
    assert desk.ask("POST", "/api/queues/%2F/q/get", body) == (400, reason)
    deep = b'{"count":1,"encoding":"auto","ackmode":' + b"[" * 90_000 + b"]" * 90_000 + b"}"
    assert desk.ask("POST", "/api/queues/%2F/q/get", deep) == (400, "the values are nested too deeply")


def test_each_publish_over_http_is_a_new_publisher_to_a_full_quorum_queue(desk: Desk) -> None:
    """rabbit_fifo.erl refuses unknown publishers only above the limit."""
    queue = declare(desk, queue_type="quorum", max_length=1, overflow="reject-publish")
    assert [publish(desk)[0] for _ in range(3)] == [200, 200, 400]
    get(desk, "ack_requeue_false", 1)
    assert publish(desk)[0] == 200
    assert queue.ready_count == 2


@pytest.mark.parametrize("limits", ["vhost-limits/%2F", "user-limits/guest"])
def test_a_limit_of_connections_applies_to_requests_that_open_one(desk: Desk, limits: str) -> None:
    declare(desk)
    assert desk.ask("PUT", f"/api/{limits}/max-connections", {"value": 0})[0] == 204
    options = {"ackmode": "ack_requeue_false", "count": 1, "encoding": "auto"}
    for answer in (publish(desk), desk.ask("POST", GET, options), desk.ask("GET", "/api/aliveness-test/%2F")):
        assert answer == (401, "Access refused.")
    assert desk.ask("DELETE", "/api/queues/%2F/q/contents")[0] == 204


def test_a_missing_queue_or_exchange_is_named_at_a_limit_of_connections(desk: Desk) -> None:
    assert desk.ask("PUT", "/api/vhost-limits/%2F/max-connections", {"value": 0})[0] == 204
    options = {"ackmode": "ack_requeue_false", "count": 1, "encoding": "auto"}
    assert desk.ask("POST", GET, options) == (404, "queue_not_found")
    message = {"routing_key": "q", "payload": "x", "payload_encoding": "string", "properties": {}}
    assert desk.ask("POST", "/api/exchanges/%2F/missing/publish", message) == (404, "exchange_not_found")


@pytest.mark.parametrize("body", [b"{", {"ackmode": "x", "count": 1, "encoding": "auto"}])
def test_the_queue_of_a_get_is_looked_for_before_the_body_is_read(desk: Desk, body: Any) -> None:
    assert desk.ask("POST", GET, body) == (404, "queue_not_found")


def test_no_messages_of_no_queue_are_an_empty_list_before_4_0() -> None:
    desk = Desk(compat="3.13")
    assert desk.ask("POST", GET, {"ackmode": "ack_requeue_true", "count": 0, "encoding": "auto"}) == (200, [])
