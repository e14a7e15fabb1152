from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.management.attention.finding import Finding
from amqp_broker.management.attention.node_findings import alarms_of, findings_of_node
from amqp_broker.management.node.node import Alarm, ShovelStatus
from tests.management.asking import NOW, StillNode
from tests.peer import Lab


class TroubledNode(StillNode):
    """A node with alarms, shovels and a clock as the test says."""

    def __init__(self, alarms: list[Alarm] | None = None, shovels: list[ShovelStatus] | None = None) -> None:
        super().__init__()
        self.given_alarms = alarms or []
        self.given_shovels = shovels or []
        self.offset_ms = 0
        self.has_stopped = False

    def alarms(self) -> list[Alarm]:
        return self.given_alarms

    def shovels(self) -> list[ShovelStatus]:
        return self.given_shovels

    def clock_offset(self) -> int:
        return self.offset_ms

    def is_frozen(self) -> bool:
        return self.has_stopped

    def clock_moved_at_ms(self) -> int | None:
        return NOW if self.has_stopped or self.offset_ms else None


@pytest.fixture
def lab() -> Lab:
    lab = Lab()
    lab.broker.now = lab.now
    return lab


def found(lab: Lab, node: TroubledNode) -> list[Finding]:
    return list(findings_of_node(lab.broker, node))


@pytest.mark.parametrize(
    ("alarm", "sentence"),
    [
        (
            Alarm("memory", "memory watermark", NOW),
            "Memory alarm: the broker uses 28 MiB of memory, and 953 MiB are allowed. "
            "Publishers wait until it ends; none is blocked yet.",
        ),
        (
            Alarm("disk", "disk free limit", NOW),
            "Disk alarm: the disk has 8,583 MiB left, and 47 MiB must be free. "
            "Publishers wait until it ends; none is blocked yet.",
        ),
        (
            Alarm("disk", "store failing", NOW),
            "Disk alarm: the store cannot be written. Publishers wait until it ends; none is blocked yet.",
        ),
        (
            Alarm("memory", "memory alarm by command", NOW),
            "Memory alarm: it was set by a command. Publishers wait until it ends; none is blocked yet.",
        ),
    ],
)
def test_an_alarm_says_its_cause_and_its_effect(lab: Lab, alarm: Alarm, sentence: str) -> None:
    [finding] = alarms_of(lab.broker, TroubledNode([alarm]))
    assert (finding.kind, finding.level, finding.since_ms) == ("alarm", "critical", NOW)
    assert finding.sentence == sentence


def test_an_alarm_counts_the_publishers_that_wait(lab: Lab) -> None:
    peer = lab.connect()
    lab.connect()
    lab.broker.set_alarm("memory", True)
    peer.publish("q")
    [finding] = alarms_of(lab.broker, TroubledNode([Alarm("memory", "memory alarm by command", NOW)]))
    assert finding.sentence.endswith("Publishers wait until it ends; 1 is blocked now.")


def test_a_fault_rule_that_is_on_is_a_notice_with_its_hits(lab: Lab) -> None:
    rule = lab.broker.faults.add(Rule("confirm_nack", queue="q", vhost="/"))
    [finding] = found(lab, TroubledNode())
    assert (finding.kind, finding.level, finding.since_ms) == ("fault-rule", "notice", lab.now)
    assert finding.sentence == (
        "Fault rule 1 is on: confirm_nack on publish (vhost '/', queue 'q'). It has hit 0 times."
    )
    assert finding.place == {"fault": rule.id, "vhost": "/"}
    lab.broker.faults.remove(rule.id)
    assert found(lab, TroubledNode()) == []


def test_a_rule_that_is_spent_but_still_slows_connections_down_is_a_notice(lab: Lab) -> None:
    peer = lab.connect()
    rule = lab.broker.faults.add(Rule("latency", on="now", delay_ms=200))
    assert [finding.place["fault"] for finding in found(lab, TroubledNode())] == [rule.id]
    peer.disconnect()
    assert found(lab, TroubledNode()) == []


def test_a_spent_rule_and_one_whose_turn_has_not_come_are_no_findings(lab: Lab) -> None:
    lab.broker.faults.add(Rule("confirm_nack", times=1, then=[{"action": "confirm_drop"}]))
    assert [finding.place["fault"] for finding in found(lab, TroubledNode())] == [1]
    publisher = lab.connect()
    publisher.declare("q")
    publisher.send_bytes(b"\x01\x00\x01\x00\x00\x00\x05\x00\x55\x00\x0a\x00\xce")
    publisher.publish("q")
    assert [finding.place["fault"] for finding in found(lab, TroubledNode())] == [2]


@pytest.mark.parametrize(
    ("offset_ms", "has_stopped", "sentence"),
    [
        (
            3_600_000,
            False,
            "The broker's clock is 1 hour ahead: messages expire, and timestamps are set, by its time.",
        ),
        (
            90_000_000,
            False,
            "The broker's clock is 1 day ahead: messages expire, and timestamps are set, by its time.",
        ),
        (-5000, True, "The broker's clock is frozen. It is 5 seconds behind."),
        (0, True, "The broker's clock is frozen."),
    ],
)
def test_a_moved_clock_is_a_notice(lab: Lab, offset_ms: int, has_stopped: bool, sentence: str) -> None:
    node = TroubledNode()
    node.offset_ms, node.has_stopped = offset_ms, has_stopped
    [finding] = found(lab, node)
    assert (finding.kind, finding.sentence, finding.since_ms) == ("clock", sentence, NOW)


def test_a_shovel_that_has_failed_is_named_with_the_reason(lab: Lab) -> None:
    details: dict[str, Any] = {"reason": "cannot connect to amqp://there: refused"}
    shovels = [
        ShovelStatus("fails", "/", "terminated", details),
        ShovelStatus("static", None, "terminated", details),
        ShovelStatus("runs", "/", "running", {}),
        ShovelStatus("waits", "/", "terminated", {"reason": "autodelete"}),
        ShovelStatus("paused", "/", "terminated", {}),
    ]
    first, second = found(lab, TroubledNode(shovels=shovels))
    assert first.sentence == "Shovel 'fails' does not run: cannot connect to amqp://there: refused."
    assert (first.kind, first.place, second.place) == (
        "shovel",
        {"shovel": "fails", "vhost": "/"},
        {"shovel": "static"},
    )
