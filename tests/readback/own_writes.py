"""The writes of the HTTP API that RabbitMQ does not have, for tests and for the command line."""

from __future__ import annotations

from typing import Final

import pika
import pika.exceptions

from compat.waiting import wait_until
from tests.readback.case import Case, Step, ctl, delete, post, put, row, seen
from tests.readback.http_writes import message, queue, soon
from tests.readback.node import Node

RULE: Final = {"action": "confirm_nack", "routing_key": "dropped"}
HOUR_MS: Final = 3_600_000
EVENTS_STREAM: Final = queue("events", kind="stream")


def expired(node: Node) -> list[bytes]:
    """Return what is left in a queue whose messages live for an hour."""
    return node.bodies("mortal")


def faults(node: Node) -> list[str]:
    return [rule["action"] for rule in node.get("/_broker/faults")]


def fault_removed(node: Node) -> None:
    for rule in node.get("/_broker/faults"):
        node.write("DELETE", f"/_broker/faults/{rule['id']}")


def fault_released(node: Node) -> None:
    for rule in node.get("/_broker/faults"):
        node.write("POST", f"/_broker/faults/{rule['id']}/release", {"count": 2})


def closing(path: str) -> Step:
    """Post a request that is answered with 202, and wait until the HTTP API is closed, which comes last."""

    def step(node: Node) -> None:
        node.write("POST", path)
        wait_until(lambda: not node.serves_http())

    return step


def accepts(node: Node) -> bool:
    """Return whether an AMQP client gets a connection."""
    try:
        node.connect("trial").close()
    except (pika.exceptions.AMQPError, OSError, ValueError):
        # pika raises ValueError for a connection that has ended before it looks at it.
        return False
    return True


def is_blocked(node: Node) -> bool:
    """Return whether a client that publishes is blocked."""
    connection = node.connect("publisher")
    blocked: list[object] = []
    connection.add_on_connection_blocked_callback(lambda *frame: blocked.append(frame))
    connection.channel().basic_publish("amq.fanout", "", b"")
    connection.process_data_events(0.2)
    # A blocked connection is not read any more, so it cannot be closed.
    return bool(blocked)


def logged(node: Node) -> int:
    """Return the number of events of the published message that are still in the log."""
    return len(node.get("/_broker/messages?routing_key=logged&timeout_s=0")["messages"])


def traces(node: Node) -> bool:
    """Return whether the publish of a message is written to the stream of the trace."""
    before = node.row("list_queues name messages", name="events")["messages"]
    publish("any")(node)
    return bool(soon(lambda: node.row("list_queues name messages", name="events")["messages"] > before, True))


def publish(key: str) -> Step:
    return post("exchanges/%2F/amq.default/publish", message(key, "x"))


def use_badly(node: Node) -> None:
    """Connect again and again for one message each: there is advice about that."""
    for _ in range(30):
        connection = node.connect("short")
        connection.channel().basic_publish("", "mortal", b"x")
        connection.close()


def logs_connections(node: Node) -> bool:
    """Return whether the log has lines about a new connection. The one about its end is the last."""
    before = len(node.output)
    node.connect("logged").close()
    return bool(soon(lambda: "closing AMQP connection" in node.output[before:], True))


def frame_max(node: Node) -> int:
    """Return the frame size that an AMQP client is offered."""
    connection = node.connect("tuned")
    limit: int = connection._impl.params.frame_max
    connection.close()
    return limit


CLOCK: Final = (
    Case(
        "POST /_broker/clock/advance",
        post("/_broker/clock/advance", {"duration": "2h"}),
        expired,
        [],
        [queue("mortal", 1, ttl_ms=HOUR_MS)],
        is_alone=True,
    ),
    Case(
        "POST /_broker/clock/freeze",
        post("/_broker/clock/freeze"),
        seen("/_broker/clock", "is_frozen"),
        True,
        is_alone=True,
    ),
    Case(
        "POST /_broker/clock/resume",
        post("/_broker/clock/resume"),
        seen("/_broker/clock", "is_frozen"),
        False,
        [post("/_broker/clock/freeze")],
        is_alone=True,
    ),
)

FAULTS: Final = (
    Case("POST /_broker/faults", post("/_broker/faults", RULE), faults, ["confirm_nack"], is_alone=True),
    Case(
        "DELETE /_broker/faults", delete("/_broker/faults"), faults, [], [post("/_broker/faults", RULE)], is_alone=True
    ),
    Case(
        "POST /_broker/faults/{id}/release",
        fault_released,
        lambda node: [rule["allowed"] for rule in node.get("/_broker/faults")],
        [2],
        [post("/_broker/faults", {"action": "hold_delivery"})],
        is_alone=True,
    ),
    Case(
        "POST /_broker/nemesis/{vhost}",
        post("/_broker/nemesis/%2F", {"seed": 7}),
        lambda node: (node.get("/_broker/nemesis/%2F") or {}).get("seed"),
        7,
        is_alone=True,
    ),
    Case(
        "DELETE /_broker/nemesis/{vhost}",
        delete("/_broker/nemesis/%2F"),
        lambda node: (node.get("/_broker/nemesis/%2F") or {}).get("is_over"),
        True,
        [post("/_broker/nemesis/%2F", {"seed": 7})],
        is_alone=True,
    ),
    Case("DELETE /_broker/faults/{id}", fault_removed, faults, [], [post("/_broker/faults", RULE)], is_alone=True),
    Case(
        "DELETE /_broker/advice",
        delete("/_broker/advice"),
        lambda node: node.get("/_broker/advice"),
        [],
        [use_badly],
        is_alone=True,
    ),
)

EVENTS: Final = (
    Case(
        "PUT /_broker/event-log",
        put("/_broker/event-log"),
        lambda node: [log["vhost"] for log in node.get("/_broker/event-log")],
        ["/"],
        is_alone=True,
    ),
    Case(
        "DELETE /_broker/event-log",
        delete("/_broker/event-log"),
        lambda node: len(node.get("/_broker/event-log")),
        0,
        [put("/_broker/event-log")],
        is_alone=True,
    ),
    Case(
        "PUT /_broker/event-log/{vhost}",
        put("/_broker/event-log/%2F", {}),
        lambda node: [log["vhost"] for log in node.get("/_broker/event-log")],
        ["/"],
        is_alone=True,
    ),
    Case(
        "DELETE /_broker/event-log/{vhost}",
        delete("/_broker/event-log/%2F"),
        lambda node: len(node.get("/_broker/event-log")),
        0,
        [put("/_broker/event-log/%2F", {})],
        is_alone=True,
    ),
    Case(
        "DELETE /_broker/messages",
        delete("/_broker/messages"),
        logged,
        0,
        [put("/_broker/event-log/%2F", {}), publish("logged")],
        is_alone=True,
    ),
    Case(
        "PUT /_broker/trace/{vhost}",
        put("/_broker/trace/%2F", {"queue": "events"}),
        traces,
        True,
        [EVENTS_STREAM],
        is_alone=True,
    ),
    Case(
        "DELETE /_broker/trace/{vhost}",
        delete("/_broker/trace/%2F"),
        traces,
        False,
        [EVENTS_STREAM, put("/_broker/trace/%2F", {"queue": "events"})],
        is_alone=True,
    ),
    Case(
        "PUT /_broker/firehose/{vhost}",
        put("/_broker/firehose/%2F"),
        row("list_vhosts name tracing", "tracing", name="/"),
        [True],
        is_alone=True,
    ),
    Case(
        "DELETE /_broker/firehose/{vhost}",
        delete("/_broker/firehose/%2F"),
        row("list_vhosts name tracing", "tracing", name="/"),
        [False],
        [put("/_broker/firehose/%2F")],
        is_alone=True,
    ),
)

NODE: Final = (
    Case(
        "PUT /_broker/memory-limit",
        put("/_broker/memory-limit", {"value": "0.0000001"}),
        is_blocked,
        True,
        is_alone=True,
    ),
    Case(
        "PUT /_broker/disk-free-limit",
        put("/_broker/disk-free-limit", {"value": "100TB"}),
        is_blocked,
        True,
        is_alone=True,
    ),
    Case("PUT /_broker/alarms/{resource}", put("/_broker/alarms/memory"), is_blocked, True, is_alone=True),
    Case(
        "DELETE /_broker/alarms/{resource}",
        delete("/_broker/alarms/disk"),
        is_blocked,
        False,
        [put("/_broker/alarms/disk")],
        is_alone=True,
    ),
    Case(
        "PUT /_broker/disk-monitoring",
        put("/_broker/disk-monitoring"),
        is_blocked,
        True,
        [delete("/_broker/disk-monitoring"), put("/_broker/disk-free-limit", {"value": "100TB"})],
        is_alone=True,
    ),
    Case(
        "DELETE /_broker/disk-monitoring",
        delete("/_broker/disk-monitoring"),
        is_blocked,
        False,
        [put("/_broker/disk-free-limit", {"value": "100TB"})],
        is_alone=True,
    ),
    Case(
        "PUT /_broker/environment",
        put("/_broker/environment", {"value": "[{rabbit,[{frame_max,9000}]}]."}),
        frame_max,
        9000,
        is_alone=True,
    ),
    Case(
        "PUT /_broker/log-level",
        put("/_broker/log-level", {"value": "error"}),
        logs_connections,
        False,
        is_alone=True,
    ),
    Case("POST /_broker/stop", post("/_broker/stop"), lambda node: node.ends(), True, is_alone=True),
    Case("POST /_broker/stop-app", closing("/_broker/stop-app"), accepts, False, is_alone=True),
    Case("POST /_broker/start-app", ctl("start_app"), accepts, True, [ctl("stop_app")], is_alone=True),
    Case("POST /_broker/suspend-listeners", closing("/_broker/suspend-listeners"), accepts, False, is_alone=True),
    Case(
        "POST /_broker/resume-listeners",
        ctl("resume_listeners"),
        accepts,
        True,
        [ctl("suspend_listeners")],
        is_alone=True,
    ),
)
