"""Alarms, with readings that the test sets."""

from __future__ import annotations

import logging

import pytest

from amqp_broker.management.node.node import Alarm
from amqp_broker.server.alarms import FREE_SPACE, STORE_FAILING, WATERMARK, Alarms, Limits, Readings
from tests.broker_parts import new_broker, new_message, new_queue
from tests.memory_journal import MemoryJournal

GB = 10**9


class Node:
    """A broker, and its readings of memory, disk and store in GB."""

    def __init__(self, memory_max: float | None = 6) -> None:
        self.broker = new_broker(MemoryJournal())
        self.memory = self.store = 1.0
        self.disk = 100.0
        self.trimmed = 0
        self.readings = Readings(
            lambda: int(self.memory * GB), lambda: int(self.disk * GB), lambda: int(self.store * GB), self.trim
        )
        self.alarms = Alarms(
            self.broker,
            Limits(None if memory_max is None else int(memory_max * GB), 2 * GB, 10 * GB),
            self.readings,
        )

    def trim(self) -> None:
        self.trimmed += 1

    def see(self, **readings: float) -> set[str]:
        """Check these readings; return the alarms."""
        vars(self).update(readings)
        before = set(self.broker.alarms)
        assert self.alarms.check() is (self.broker.alarms != before)
        return set(self.broker.alarms)


@pytest.fixture
def node() -> Node:
    return Node()


def test_without_a_shortage_there_is_no_alarm(node: Node) -> None:
    assert node.see() == set()


@pytest.mark.parametrize(
    ("readings", "resource"), [({"memory": 6.1}, "memory"), ({"disk": 1.9}, "disk"), ({"store": 10.1}, "disk")]
)
def test_a_short_resource_sets_its_alarm(node: Node, readings: dict[str, float], resource: str) -> None:
    assert node.see(**readings) == {resource}


@pytest.mark.parametrize(
    ("short", "almost", "enough"),
    [
        ({"memory": 6.1}, {"memory": 5.8}, {"memory": 5.6}),
        ({"disk": 1.9}, {"disk": 2.05}, {"disk": 2.2}),
        ({"store": 10.1}, {"store": 9.6}, {"store": 9.4}),
    ],
)
def test_an_alarm_clears_below_its_limit_with_a_margin(
    node: Node, short: dict[str, float], almost: dict[str, float], enough: dict[str, float]
) -> None:
    assert node.see(**almost) == set()
    assert node.see(**short) == node.see(**almost) != set()
    assert node.see(**enough) == set()


def test_a_disk_alarm_clears_with_its_last_reason(node: Node) -> None:
    node.alarms.set(STORE_FAILING, True)
    assert node.see(disk=1.0, store=11.0) == {"disk"}
    node.alarms.set(STORE_FAILING, False)
    assert node.see(disk=100.0) == {"disk"}
    assert node.see(store=1.0) == set()


def test_a_map_that_is_full_below_the_limit_must_be_drained(node: Node) -> None:
    node.see(store=8.0)
    node.alarms.on_full_map()
    assert node.see() == node.see(store=7.9) == {"disk"}
    assert node.see(store=7.5) == set()


def test_memory_and_disk_alarms_are_independent(node: Node) -> None:
    assert node.see(memory=7.0, disk=1.0) == {"memory", "disk"}
    assert node.see(memory=1.0) == {"disk"}


def test_a_watermark_of_0_blocks_permanently() -> None:
    node = Node(memory_max=0)
    assert node.see(memory=0.001) == node.see(memory=0.0) == {"memory"}


def test_without_a_watermark_memory_is_not_checked() -> None:
    assert Node(memory_max=None).see(memory=1e6) == set()


def test_free_memory_is_returned_to_the_system_only_during_the_alarm(node: Node) -> None:
    node.see(memory=5.9)
    node.see(memory=6.1)
    assert node.trimmed == 0
    node.see()
    assert node.trimmed == 1


def test_free_memory_is_returned_to_the_system_while_queues_are_paged_out(node: Node) -> None:
    queue = new_queue(node.broker.vhosts["/"])
    for _ in range(2000):
        queue.push(new_message(b"x"))
    node.see(memory=3.1)
    assert node.trimmed == 0
    node.see()
    assert node.trimmed == 1


def test_the_log_has_the_texts_of_rabbitmq(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    node.see(memory=6.1)
    node.see(memory=1.0, disk=1.0)
    node.see(disk=100.0)
    name = node.broker.node
    lines = [line for message in caplog.messages for line in message.splitlines() if line and "*" not in line]
    assert lines == [
        "vm_memory_high_watermark set. Memory used:6100000000 allowed:6000000000",
        f"memory resource limit alarm set on node {name}.",
        "vm_memory_high_watermark clear. Memory used:1000000000 allowed:6000000000",
        f"memory resource limit alarm cleared on node {name}",
        "memory resource limit alarm cleared across the cluster",
        "Free disk space is insufficient. Free bytes: 1000000000. Limit: 2000000000",
        f"disk resource limit alarm set on node {name}.",
        "Free disk space is sufficient. Free bytes: 100000000000. Limit: 2000000000",
        f"disk resource limit alarm cleared on node {name}",
        "disk resource limit alarm cleared across the cluster",
    ]
    assert "*** Publishers will be blocked until this alarm clears ***" in caplog.text


def test_a_known_reason_is_not_logged_again(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.alarms.set(FREE_SPACE, True)
    node.alarms.set(STORE_FAILING, True)
    node.alarms.set(WATERMARK, False)
    assert len(caplog.records) == 1


def test_above_half_of_the_watermark_transient_messages_are_paged_out(node: Node) -> None:
    queue = new_queue(node.broker.vhosts["/"])
    for _ in range(2000):
        queue.push(new_message(b"x"))
    node.see(memory=2.9)
    assert not queue.buffers
    assert node.see(memory=3.1) == set()
    assert queue.buffers
    node.see(memory=1.0)
    assert not queue.buffers


def test_an_alarm_by_command_stays_until_it_is_cleared(node: Node) -> None:
    node.alarms.command("memory", True)
    assert node.see() == {"memory"}
    node.alarms.command("memory", False)
    assert node.see() == set()
    assert node.see(memory=7) == {"memory"}
    node.alarms.command("memory", False)
    assert node.broker.alarms == set()


def test_each_reason_for_an_alarm_is_listed_with_its_begin(node: Node) -> None:
    node.broker.now = 1000
    node.see(disk=1.0)
    node.broker.now = 2000
    node.see(memory=7)
    node.alarms.command("memory", True)
    assert node.alarms.all() == [
        Alarm("disk", "disk free limit", 1000),
        Alarm("memory", "memory alarm by command", 2000),
    ]
    node.see(disk=100)
    assert node.alarms.all() == [Alarm("memory", "memory alarm by command", 2000)]


def test_an_alarm_that_is_on_is_not_cleared_by_a_command_that_sets_it(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """Blocked publishers would go on in between."""
    node.see(memory=7)
    caplog.clear()
    node.alarms.command("memory", True)
    assert node.broker.alarms == {"memory"}
    assert caplog.messages == []


def test_an_alarm_that_a_command_has_cleared_returns_when_its_limit_is_exceeded_anew(node: Node) -> None:
    assert node.see(memory=7) == {"memory"}
    node.alarms.command("memory", False)
    assert node.see() == set()
    assert node.see(memory=1) == set()
    assert node.see(memory=7) == {"memory"}
    assert node.see(disk=1) == {"memory", "disk"}
    node.alarms.command("disk", False)
    assert node.see() == {"memory"}
    node.alarms.watch_disk(True)
    assert node.see() == {"memory", "disk"}


def test_a_disk_that_is_not_watched_sets_no_alarm(node: Node) -> None:
    node.alarms.watch_disk(False)
    assert node.see(disk=1) == set()


def test_a_resource_that_cannot_be_read_leaves_the_others_and_is_logged_once(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> int:
        raise OSError("no such folder")

    readings = node.readings
    disk_free, readings.disk_free = readings.disk_free, fail
    assert node.see() == set()
    assert node.see(store=11) == {"disk"}
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "a resource cannot be checked: no such folder"
    ]
    readings.disk_free = disk_free
    assert node.see(store=1) == set()
    assert node.see(disk=1) == {"disk"}
