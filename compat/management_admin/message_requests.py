"""The requests about messages; `playing.py` has declared the queues."""

from __future__ import annotations

from compat.management.http_asking import Ask, delete, post


def _publish(key: str, payload: object, who: str = "guest", encoding: object = "string", **properties: object) -> Ask:
    body = {"routing_key": key, "payload": payload, "payload_encoding": encoding, "properties": properties}
    return post("exchanges/%2F/amq.default/publish", body, who)


def _publish_raw(path: str, **given: object) -> Ask:
    """Return a publish request with valid defaults."""
    body = {"routing_key": "m", "payload": "x", "payload_encoding": "string", "properties": {}, **given}
    return post(f"exchanges/{path}/publish", {key: value for key, value in body.items() if value is not ...})


def _take(queue: str, ackmode: object, count: object = 1, encoding: object = "auto", **more: object) -> Ask:
    return post(f"queues/%2F/{queue}/get", {"ackmode": ackmode, "count": count, "encoding": encoding, **more})


MESSAGES = [
    _publish("m", "one"),
    _publish("nowhere", "lost"),
    _publish("m", "dHdv", encoding="base64"),
    _publish(
        "m",
        "three",
        delivery_mode=2,
        headers={"a": 1, "b": "x", "c": [1, "y", None], "d": {"e": True}, "f": 1.5, "g": 2**40},
        content_type="text/plain",
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="600000",
        message_id="i",
        timestamp=1_700_000_000,
        type="t",
        user_id="guest",
        app_id="app",
        content_encoding="gzip",
    ),
    _publish("m", "/wA=", encoding="base64"),
    _publish("m", ""),
    _publish("m", "été"),
    _take("m", "ack_requeue_true", 10),
    _take("m", "ack_requeue_true", 2),
    _take("m", "reject_requeue_true", 2, truncate=2),
    _take("m", "ack_requeue_false", 1, "base64"),
    _take("m", "ack_requeue_false", "2"),
    _take("m", "ack_requeue_false", 100, truncate=3),
    _take("m", "ack_requeue_false", 100),
    _publish("m", "x", delivery_mode="2"),
    _publish("m", "x", priority="7"),
    _publish("m", "x", timestamp="1700000000"),
    _publish("m", "x", expiration=5000000),
    _publish("m", "x", message_id=5),
    _publish("m", "x", nonsense=5),
    _take("m", "ack_requeue_false", 100),
    _publish("m", "x", priority=300),
    _publish("m", "x", priority=-1),
    _publish("m", "x", priority=None),
    _publish("m", "x", priority="x"),
    _publish("m", "x", headers=[]),
    _publish("m", "x", headers="x"),
    _publish("m", "x", expiration="x"),
    _publish("m", "x", user_id="alice"),
    _publish("m", "x", content_type="x" * 300),
    _publish("m", "x", headers={"CC": ["dead"]}),
    _publish("m", "x", headers={"CC": "dead"}),
    _publish("m", "x", headers={"x" * 300: 1}),
    _publish("m", "!!", encoding="base64"),
    _publish("m", "x", encoding="hex"),
    _publish("m", "x", encoding=5),
    _publish("m", 5),
    _publish("m", None),
    _publish_raw("%2F/amq.default", properties=...),
    _publish_raw("%2F/amq.default", routing_key=5),
    _publish_raw("%2F/amq.default", routing_key="k" * 300),
    _publish_raw("%2F/amq.default", properties=[]),
    _publish_raw("%2F/amq.default", properties="x"),
    post("exchanges/%2F/amq.default/publish", b"{"),
    _publish_raw("%2F/none"),
    _publish_raw("none/amq.direct"),
    _publish_raw("%2F/inner"),
    _publish("m", "x", "bob"),
    _publish("m", "x", "monica"),
    delete("queues/%2F/m/contents"),
    _take("m", "ack_requeue_false", 1),
    _publish("full", "one"),
    _publish("full", "two"),
    _publish("dying", "one"),
    _publish("dying", "two"),
    _take("dying", "reject_requeue_false", 5),
    _take("dead", "ack_requeue_false", 5),
    _publish("qq", "one", delivery_mode=2),
    _take("qq", "ack_requeue_true", 1),
    _take("qq", "reject_requeue_true", 1),
    _take("qq", "ack_requeue_false", 1),
    _take("log", "ack_requeue_true", 1),
    _take("none", "ack_requeue_true", 1),
    _take("m", "nonsense", 1),
    _take("m", 5, 1),
    _take("m", "ack_requeue_true", "x"),
    _take("m", "ack_requeue_true", -1),
    _take("m", "ack_requeue_true", None),
    _take("m", "ack_requeue_true", 1.5),
    _take("m", "ack_requeue_true", 1, "hex"),
    _take("m", "ack_requeue_true", 1, truncate="x"),
    post("queues/%2F/m/get", {"count": 1, "encoding": "auto"}),
    post("queues/%2F/m/get", {"ackmode": "ack_requeue_true", "encoding": "auto"}),
    post("queues/%2F/m/get", {"ackmode": "ack_requeue_true", "count": 1}),
    post("queues/%2F/m/get", b"{"),
    post("queues/%2F/m/get", b"[]"),
    delete("queues/%2F/none/contents"),
    delete("queues/%2F/log/contents"),
    delete("queues/%2F/m/contents", "bob"),
    post("queues/%2F/m/actions", {"action": "sync"}),
    post("queues/%2F/m/actions", {"action": "cancel_sync"}),
    post("queues/%2F/m/actions", {"action": "nonsense"}),
    post("queues/%2F/m/actions", {}),
    post("queues/%2F/none/actions", {"action": "sync"}),
]
