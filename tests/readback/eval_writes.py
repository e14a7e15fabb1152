"""The forms of `rabbitmqctl eval` that change something, and variables by their effect on clients."""

from __future__ import annotations

from typing import Any, Final

from tests.readback.case import Case, Step, ctl
from tests.readback.http_writes import message
from tests.readback.node import Node
from tests.readback.own_writes import accepts, frame_max, is_blocked


def forms(*expressions: str) -> list[Step]:
    return [ctl("eval", f"{expression}.") for expression in expressions]


def variable(key: str, term: str) -> Step:
    """Set a variable, and check that it is read as it was set."""

    def write(node: Node) -> None:
        assert node.ctl("eval", f"application:set_env(rabbit, {key}, {term}).") == "ok\n"
        assert node.ctl("eval", f"application:get_env(rabbit, {key}).") == f"{{ok,{term}}}\n"

    return write


SET_ALARM: Final = "rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []})"
FORMS: Final = (
    Case(
        "rabbit_alarm:set_alarm({{resource_limit, RESOURCE, NODE}, []})",
        forms(SET_ALARM)[0],
        is_blocked,
        True,
        is_alone=True,
    ),
    Case(
        "rabbit_alarm:clear_alarm({resource_limit, RESOURCE, NODE})",
        forms("rabbit_alarm:clear_alarm({resource_limit, memory, node()})")[0],
        is_blocked,
        False,
        forms(SET_ALARM),
        is_alone=True,
    ),
    Case(
        "vm_memory_monitor:set_vm_memory_high_watermark(SHARE)",
        forms("vm_memory_monitor:set_vm_memory_high_watermark(0.0000001)")[0],
        is_blocked,
        True,
        is_alone=True,
    ),
    Case(
        "vm_memory_monitor:set_vm_memory_high_watermark({absolute, OCTETS})",
        forms("vm_memory_monitor:set_vm_memory_high_watermark({absolute, 1000})")[0],
        is_blocked,
        True,
        is_alone=True,
    ),
    Case(
        "rabbit_disk_monitor:set_disk_free_limit(OCTETS)",
        forms("rabbit_disk_monitor:set_disk_free_limit(100000000000000)")[0],
        is_blocked,
        True,
        is_alone=True,
    ),
    Case("application:set_env(APPLICATION, KEY, VALUE)", variable("frame_max", "9000"), frame_max, 9000, is_alone=True),
)


def tuned(name: str) -> Any:
    """Read a value that the broker offers an AMQP client."""

    def read(node: Node) -> Any:
        offered = node.connect("tuned")
        value = getattr(offered._impl.params, name)
        offered.close()
        return value

    return read


def is_too_long(node: Node) -> bool:
    """Return whether a message of a hundred octets is refused."""
    return node.ask("POST", "exchanges/%2F/amq.default/publish", message("x", "x" * 100))[0] != 200


# Variables by their effect on clients that come later.
VARIABLES: Final = (
    Case("channel_max", variable("channel_max", "77"), tuned("channel_max"), 77, is_alone=True),
    Case("heartbeat", variable("heartbeat", "33"), tuned("heartbeat"), 33, is_alone=True),
    Case("max_message_size", variable("max_message_size", "10"), is_too_long, True, is_alone=True),
    Case("connection_max", variable("connection_max", "0"), accepts, False, is_alone=True),
)
