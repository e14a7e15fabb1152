"""Findings about the node: alarms, shovels that have failed, fault rules that are on, a moved clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.broker.lab.fault_rules import OF_METHOD
from amqp_broker.management.attention.finding import Finding, counted, number

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.management.node.node import Alarm, Node, ShovelStatus

_UNITS_MS: Final = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000), ("millisecond", 1))
_MIB: Final = 1 << 20


def alarms_of(broker: Broker, node: Node) -> Iterator[Finding]:
    """Yield a finding about each reason of an alarm."""
    alarms = node.alarms()
    # Open pages ask each second, and mostly there is no alarm.
    blocked = sum(1 for connection in broker.connections if connection.status == "blocked") if alarms else 0
    for alarm in alarms:
        yield _alarm(node, alarm, blocked)


def findings_of_node(broker: Broker, node: Node) -> Iterator[Finding]:
    """Yield what else needs attention at the node."""
    for shovel in node.shovels():
        if shovel.state == "terminated" and shovel.details.get("reason") not in (None, "autodelete"):
            yield _shovel(shovel)
    for rule in broker.faults:
        # The effect of a spent rule may last, as that of latency does on connections that were open.
        if rule.is_active or rule.affected:
            yield _rule(rule)
    yield from _clock(node)


def _alarm(node: Node, alarm: Alarm, blocked: int) -> Finding:
    causes = {
        "memory watermark": (
            f"the broker uses {_mib(node.memory_used())} of memory, and {_mib(node.memory_limit())} are allowed",
            "Consume messages, close connections, raise vm_memory_high_watermark, or purge what is no longer needed.",
        ),
        "disk free limit": (
            f"the disk has {_mib(node.disk_free())} left, and {_mib(node.disk_free_limit())} must be free",
            "Free disk space, or lower disk_free_limit.",
        ),
        "store full": (
            "the store has reached its limit",
            "Consume messages, raise the limit of the store, or purge what is no longer needed.",
        ),
        "store failing": ("the store cannot be written", "Look at the log, and at the disk of the data folder."),
    }
    by_command = ("it was set by a command", "Clear it by a command.")
    cause, remedy = causes.get(alarm.reason, by_command)
    effect = f"{counted(blocked, 'is', 'are')} blocked now" if blocked else "none is blocked yet"
    return Finding(
        "alarm",
        f"{alarm.resource.capitalize()} alarm: {cause}. Publishers wait until it ends; {effect}.",
        remedy,
        alarm.since_ms,
        {"resource": alarm.resource, "reason": alarm.reason},
    )


def _shovel(shovel: ShovelStatus) -> Finding:
    place = {"shovel": shovel.name} if shovel.vhost is None else {"shovel": shovel.name, "vhost": shovel.vhost}
    return Finding(
        "shovel",
        f"Shovel '{shovel.name}' does not run: {shovel.details['reason']}.",
        "Look at its two ends; it tries again after its reconnect-delay.",
        None,
        place,
    )


def _rule(rule: Rule) -> Finding:
    fields = {name: value for name in OF_METHOD if (value := getattr(rule, name)) not in (None, {})}
    where = ", ".join(f"{name} {value!r}" for name, value in fields.items())
    place: dict[str, Any] = {"fault": rule.id}
    if rule.vhost is not None:
        place["vhost"] = rule.vhost
    return Finding(
        "fault-rule",
        f"Fault rule {rule.id} is on: {rule.action} on {rule.on}{f' ({where})' if where else ''}. It has hit "
        f"{counted(rule.hits, 'time')}.",
        "Remove it when the test is over.",
        rule.added_at_ms,
        place,
    )


def _clock(node: Node) -> Iterator[Finding]:
    offset = node.clock_offset()
    if node.is_frozen():
        since = f" It is {_duration(offset)} {'ahead' if offset > 0 else 'behind'}." if offset else ""
        yield Finding(
            "clock",
            f"The broker's clock is frozen.{since}",
            "Let it run again.",
            node.clock_moved_at_ms(),
            {"is_frozen": True},
        )
    elif offset:
        yield Finding(
            "clock",
            f"The broker's clock is {_duration(offset)} {'ahead' if offset > 0 else 'behind'}: messages expire, and "
            f"timestamps are set, by its time.",
            "Start the broker anew to have the real time.",
            node.clock_moved_at_ms(),
        )


def _duration(ms: int) -> str:
    """Return a duration in its largest unit, rounded."""
    ms = abs(ms)
    name, unit_ms = next((name, unit) for name, unit in _UNITS_MS if ms >= unit)
    return counted(ms / unit_ms, name)


def _mib(octets: int) -> str:
    return f"{number(octets // _MIB)} MiB"
