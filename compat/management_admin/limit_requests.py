"""Requests at a limit that is reached: which open a connection, and which error comes first.

The vhost is one of its own. The user alice is one of `requests.USERS`.
"""

from __future__ import annotations

from typing import Final

from compat.management.http_asking import Ask, delete, get, post, put

_ALL: Final = {"configure": ".*", "write": ".*", "read": ".*"}


def _using(who: str = "guest") -> list[Ask]:
    """Return requests that use the queue, and others that use the vhost."""
    message = {"routing_key": "q", "payload": "x", "payload_encoding": "string", "properties": {}}
    taking = {"ackmode": "ack_requeue_false", "count": 1, "encoding": "auto"}
    return [
        post("exchanges/limited/amq.default/publish", message, who),
        post("queues/limited/q/get", taking, who),
        post("exchanges/limited/missing/publish", message, who),
        post("queues/limited/missing/get", taking, who),
        delete("queues/limited/q/contents", who),
        put("queues/limited/other", {"durable": True}, who),
        post("bindings/limited/e/amq.direct/q/other", {"routing_key": "k"}, who),
        delete("bindings/limited/e/amq.direct/q/other/k", who),
        delete("queues/limited/other", who),
        put("exchanges/limited/other", {"type": "fanout", "durable": True}, who),
        delete("exchanges/limited/other", who),
        get("aliveness-test/limited", who),
        delete("queues/limited/aliveness-test", who),
    ]


def _queue(name: str, kind: str | None = None, durable: bool = True, **arguments: object) -> Ask:
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    return put(
        f"queues/limited/{name}",
        {"durable": durable, "arguments": given if kind is None else {"x-queue-type": kind, **given}},
    )


REACHED: Final = [
    put("vhosts/limited"),
    _queue("q"),
    put("vhost-limits/limited/max-connections", {"value": 0}),
    *_using(),
    delete("vhost-limits/limited/max-connections"),
    *_using(),
    put("permissions/limited/alice", _ALL),
    put("user-limits/alice/max-connections", {"value": 0}),
    *_using("alice"),
    delete("user-limits/alice/max-connections"),
    put("user-limits/alice/max-channels", {"value": 0}),
    *_using("alice"),
    delete("user-limits/alice/max-channels"),
    put("vhost-limits/limited/max-queues", {"value": 1}),
    _queue("more"),
    _queue("more", x_max_length=-1),
    _queue("more", x_max_length="x"),
    _queue("more", x_overflow="x"),
    _queue("more", x_dead_letter_routing_key="k"),
    _queue("more", x_unknown=1),
    _queue("more", kind="x"),
    _queue("more", kind="quorum", durable=False),
    _queue("more", kind="quorum", x_max_priority=3),
    _queue("more", kind="stream", x_max_length_bytes=-1),
    _queue("amq.more"),
    _queue("q"),
    _queue("q", durable=False),
    _queue("q", x_max_length=-1),
    post("definitions/limited", {"queues": [{"name": "q", "durable": True, "auto_delete": False, "arguments": {}}]}),
    post("definitions/limited", {"queues": [{"name": "more", "durable": True, "auto_delete": False, "arguments": {}}]}),
    delete("vhosts/limited"),
]
