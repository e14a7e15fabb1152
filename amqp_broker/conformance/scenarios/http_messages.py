"""Messages over HTTP: publish and get, with all modes and encodings."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic

from amqp_broker.conformance.lab import Lab, http_scenario

PUBLISH = "exchanges/{vhost}/amq.default/publish"


def _publish(lab: Lab, queue: str, payload: object, encoding: object = "string", **properties: object) -> None:
    body = {"routing_key": queue, "payload": payload, "payload_encoding": encoding, "properties": properties}
    lab.http("POST", PUBLISH, body)


def _get(lab: Lab, queue: str, ackmode: object = "ack_requeue_false", count: object = 5, **more: Any) -> None:
    lab.http("POST", f"queues/{{vhost}}/{queue}/get", {"ackmode": ackmode, "count": count, "encoding": "auto", **more})


@http_scenario
def a_message_that_reaches_no_queue_is_not_routed(lab: Lab) -> None:
    q = lab.queue(durable=True)
    _publish(lab, q, "1")
    _publish(lab, lab.name("missing"), "2")
    _get(lab, q)
    _get(lab, q)


@http_scenario
def properties_are_kept(lab: Lab) -> None:
    q = lab.queue(durable=True)
    _publish(
        lab,
        q,
        "1",
        delivery_mode=2,
        headers={"a": 1, "b": "x", "c": [1, "y", None], "d": {"e": True}, "f": 1.5, "g": 2**40},
        content_type="text/plain",
        content_encoding="gzip",
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="600000",
        message_id="i",
        timestamp=1_700_000_000,
        type="t",
        app_id="app",
    )
    _get(lab, q)


@http_scenario
def a_property_of_a_wrong_type_is_refused(lab: Lab) -> None:
    q = lab.queue(durable=True)
    _publish(lab, q, "1", message_id=5)
    _publish(lab, q, "1", expiration=5000)
    _publish(lab, q, "1", priority="7")
    _publish(lab, q, "1", unknown=5)
    _get(lab, q)


@http_scenario
def a_payload_may_be_encoded(lab: Lab) -> None:
    q = lab.queue(durable=True)
    _publish(lab, q, "dHdv", "base64")
    _publish(lab, q, "/wA=", "base64")
    _publish(lab, q, "été")
    _publish(lab, q, "")
    _get(lab, q, "ack_requeue_true")
    _get(lab, q, "ack_requeue_true", encoding="base64")
    _publish(lab, q, "*", "base64")
    _publish(lab, q, "1", "none")
    _get(lab, q, encoding="none")


@http_scenario
def a_publish_without_a_field_is_refused(lab: Lab) -> None:
    whole = {"routing_key": "k", "payload": "1", "payload_encoding": "string", "properties": {}}
    for missing in whole:
        lab.http("POST", PUBLISH, {name: value for name, value in whole.items() if name != missing})


@http_scenario
def a_get_settles_messages_in_its_mode(lab: Lab) -> None:
    q = lab.queue(durable=True)
    lab.put(q, b"1", b"2", b"3")
    for mode in ("ack_requeue_true", "reject_requeue_true", "reject_requeue_false", "ack_requeue_false"):
        _get(lab, q, mode, 1)
    _get(lab, q)


@http_scenario
def messages_come_back_to_a_quorum_queue_as_the_mode_says(lab: Lab) -> None:
    for mode in ("ack_requeue_true", "reject_requeue_true"):
        q = lab.queue(mode, durable=True, arguments={"x-queue-type": "quorum"})
        lab.put(q, *(b"%d" % number for number in range(1, 13)))
        _get(lab, q, mode, 11)
        lab.channel().drain(q)


@http_scenario
def a_rejected_message_is_dead_lettered(lab: Lab) -> None:
    dead = lab.queue("dead", durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    q = lab.queue(durable=True, arguments=arguments)
    lab.put(q, b"1")
    _get(lab, q, "reject_requeue_false")
    lab.channel().drain(dead)


@http_scenario
def a_payload_may_be_truncated(lab: Lab) -> None:
    q = lab.queue(durable=True)
    lab.put(q, b"12345")
    _get(lab, q, "ack_requeue_true", truncate=2)
    _get(lab, q, "ack_requeue_true", truncate="x")


@http_scenario
def a_count_has_to_be_a_number(lab: Lab) -> None:
    q = lab.queue(durable=True)
    lab.put(q, b"1")
    for count in (0, -1, "2", "x", None):
        _get(lab, q, "ack_requeue_true", count)


@http_scenario
def a_get_of_a_missing_queue_is_not_found(lab: Lab) -> None:
    _get(lab, lab.name("missing"))


@http_scenario
def a_publish_to_a_missing_exchange_is_not_found(lab: Lab) -> None:
    body = {"routing_key": "k", "payload": "1", "payload_encoding": "string", "properties": {}}
    lab.http("POST", f"exchanges/{{vhost}}/{lab.name('missing')}/publish", body)


@http_scenario
def a_void_header_is_shown(lab: Lab) -> None:
    q = lab.queue(durable=True)
    quorum = lab.queue("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    ch = lab.channel()
    for queue in (q, quorum):
        ch.publish(b"1", routing_key=queue, headers={"n": None, "l": [None, 1], "t": {"n": None, "b": False}})
        lab.rest(queue)
        _get(lab, queue, "ack_requeue_true")
        _get(lab, queue)


@http_scenario
def a_void_header_is_published(lab: Lab) -> None:
    q = lab.queue(durable=True)
    _publish(lab, q, "1", headers={"n": None, "l": [None, 1], "t": {"n": None, "b": False}})
    _get(lab, q, "ack_requeue_true")
    lab.channel().call(Basic.Get, queue=q, no_ack=True)
