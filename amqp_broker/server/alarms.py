"""Resource alarms: resources that the node is short of, and the reasons, checked once a second.

While an alarm is set, publishers are blocked; consumers continue, which ends it. An alarm may have several reasons, and
is cleared with the last. Source: RabbitMQ, "Memory and Disk Alarms"; log texts of
rabbit_alarm.erl, vm_memory_monitor.erl and rabbit_disk_monitor.erl.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import lmdb

from amqp_broker.broker.broker import Broker
from amqp_broker.management.node.node import Alarm

logger = logging.getLogger("amqp_broker.alarms")

# Reasons, and the alarm of each.
WATERMARK: Final = "memory watermark"
FREE_SPACE: Final = "disk free limit"
STORE_FULL: Final = "store full"
STORE_FAILING: Final = "store failing"
BY_COMMAND: Final = {"memory": "memory alarm by command", "disk": "disk alarm by command"}
RESOURCES: Final = {
    WATERMARK: "memory",
    **dict.fromkeys((FREE_SPACE, STORE_FULL, STORE_FAILING), "disk"),
    **{reason: resource for resource, reason in BY_COMMAND.items()},
}

# Share of a limit at which its alarm clears; at 1.0 an alarm would change with each message.
CLEARS_AT: Final = 0.95
# Share of the watermark above which transient messages are paged out (RabbitMQ's paging ratio).
PAGING_RATIO: Final = 0.5

BANNER: Final = "*" * 58 + "\n*** Publishers will be blocked until this alarm clears ***\n" + "*" * 58


@dataclass
class Limits:
    """Limits in octets; None is no limit. With a memory limit of 0 publishers are always blocked."""

    memory_max: int | None = None
    disk_free_min: int = 0
    store_max: int | None = None


@dataclass
class Readings:
    """Functions that return current amounts in octets; `trim` returns unused memory to the system."""

    memory_used: Callable[[], int]
    disk_free: Callable[[], int] | None = None
    store_used: Callable[[], int] | None = None
    trim: Callable[[], None] = lambda: None


class Alarms:
    """Sets and clears the alarms of a broker."""

    def __init__(self, broker: Broker, limits: Limits, readings: Readings) -> None:
        self._broker = broker
        self.limits = limits
        self._readings = readings
        # When each began (ms of real time).
        self._reasons: dict[str, int] = {}
        # Reasons that a command has cleared although they still hold: as in RabbitMQ, they return when they hold anew.
        self._overruled: set[str] = set()
        self.watches_disk = True
        # Error of the last check.
        self._problem = ""

    def check(self) -> bool:
        """Compare readings with limits, and page out messages if needed. Return whether an alarm changed."""
        before, problem = set(self._broker.alarms), ""
        for check in (self._check_memory, self._check_disk, self._check_store):
            # A reading that fails, as of a folder that was removed, leaves the others.
            try:
                check()
            except (OSError, lmdb.Error) as error:
                problem = str(error)
        if problem and problem != self._problem:
            logger.error("a resource cannot be checked: %s", problem)
        self._problem = problem
        return self._broker.alarms != before

    def set(self, reason: str, is_on: bool) -> None:
        """Add or remove a reason for an alarm."""
        if is_on:
            self._reasons.setdefault(reason, self._broker.real_now())
        else:
            self._reasons.pop(reason, None)
        resource = RESOURCES[reason]
        is_low = any(RESOURCES[other] == resource for other in self._reasons)
        if is_low is (resource in self._broker.alarms):
            return
        node = self._broker.node
        if is_low:
            logger.warning("%s resource limit alarm set on node %s.\n\n%s\n", resource, node, BANNER)
        else:
            logger.warning("%s resource limit alarm cleared on node %s", resource, node)
            logger.warning("%s resource limit alarm cleared across the cluster", resource)
        self._broker.set_alarm(resource, is_low)

    def all(self) -> list[Alarm]:
        """Return the reasons for alarms, each with its alarm, in the order in which they began."""
        return [Alarm(RESOURCES[reason], reason, since_ms) for reason, since_ms in self._reasons.items()]

    def command(self, resource: str, is_on: bool) -> None:
        """Set or clear an alarm by command.

        A cleared one returns when a limit is exceeded anew, that of a full or failing store with the next check.
        """
        by_command = BY_COMMAND[resource]
        if is_on:
            # First of all, so that an alarm that is on already is not cleared in between.
            self.set(by_command, True)
        for reason in [other for other in self._reasons if RESOURCES[other] == resource]:
            if not is_on or reason != by_command:
                self.set(reason, False)
            if reason in (WATERMARK, FREE_SPACE):
                self._overruled.add(reason)

    def watch_disk(self, is_on: bool) -> None:
        """Watch the free disk space from now on, or do not: then its alarm is cleared."""
        self.watches_disk = is_on
        self._overruled.discard(FREE_SPACE)
        self.set(FREE_SPACE, False)

    def _holds(self, reason: str) -> bool:
        """Return whether the last check has found this reason."""
        return reason in self._reasons or reason in self._overruled

    def _change(self, reason: str, is_on: bool) -> None:
        self._overruled.discard(reason)
        self.set(reason, is_on)

    def on_full_map(self) -> None:
        """Set the alarm of a full store: its current size becomes its limit."""
        if self.limits.store_max is not None and self._readings.store_used is not None:
            self.limits.store_max = min(self.limits.store_max, self._readings.store_used())
        self.set(STORE_FULL, True)

    def _check_memory(self) -> None:
        limit = self.limits.memory_max
        if limit is None:
            return
        used = self._readings.memory_used()
        was_on = self._holds(WATERMARK)
        if was_on or self._broker.is_paging:
            # Memory of consumed messages is free in the process, but not yet returned to the system.
            self._readings.trim()
            used = self._readings.memory_used()
        is_on = used >= limit * CLEARS_AT if was_on else used > limit
        if is_on is not was_on:
            state = "set" if is_on else "clear"
            logger.info("vm_memory_high_watermark %s. Memory used:%d allowed:%d", state, used, limit)
            self._change(WATERMARK, is_on)
        self._broker.page(used > limit * PAGING_RATIO)

    def _check_disk(self) -> None:
        limit = self.limits.disk_free_min
        if self._readings.disk_free is None or not self.watches_disk:
            return
        free = self._readings.disk_free()
        was_on = self._holds(FREE_SPACE)
        is_on = free < (limit / CLEARS_AT if was_on else limit)
        if is_on is not was_on:
            state = "insufficient" if is_on else "sufficient"
            logger.info("Free disk space is %s. Free bytes: %d. Limit: %d", state, free, limit)
            self._change(FREE_SPACE, is_on)

    def _check_store(self) -> None:
        limit = self.limits.store_max
        if limit is None or self._readings.store_used is None:
            return
        used = self._readings.store_used()
        was_on = STORE_FULL in self._reasons
        is_on = used > (limit * CLEARS_AT if was_on else limit)
        if is_on is not was_on:
            state = "full" if is_on else "not full any more"
            logger.info("the store is %s. Bytes in use: %d. Limit: %d", state, used, limit)
            self.set(STORE_FULL, is_on)
