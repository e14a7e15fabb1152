from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.management.api.attention import ROWS_MAX
from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def kinds(desk: Desk, **query: str) -> list[str]:
    status, rows = desk.get("/_broker/attention", **query)
    assert status == 200, rows
    return [row["kind"] for row in rows]


def test_nothing_needs_attention_at_first(desk: Desk) -> None:
    assert desk.get("/_broker/attention") == (200, [])


def test_each_row_has_its_sentence_remedy_time_and_place(desk: Desk) -> None:
    desk.lab.connect().publish("ordrs")
    status, [row] = desk.get("/_broker/attention")
    assert (status, row) == (
        200,
        {
            "kind": "unroutable",
            "level": "warning",
            "sentence": "1 message published to the default exchange reached no queue, such as with routing key "
            "'ordrs'.",
            "remedy": "Declare a queue of this name, or publish with the name of another.",
            "since_ms": desk.broker.real_now(),
            "vhost": "/",
            "exchange": "",
            "routing_key": "ordrs",
        },
    )


def test_the_most_urgent_comes_first(desk: Desk) -> None:
    desk.broker.faults.add(Rule("confirm_nack"))
    peer = desk.lab.connect()
    peer.publish("ordrs")
    peer.declare("q")
    for _ in range(12):
        peer.publish("q")
    assert kinds(desk) == ["unroutable", "no-consumer", "fault-rule"]


def test_attention_is_listed_by_vhost_with_that_of_the_node(desk: Desk) -> None:
    desk.broker.add_vhost("other")
    desk.broker.faults.add(Rule("confirm_nack"))
    desk.broker.faults.add(Rule("confirm_drop", vhost="/"))
    desk.lab.connect().publish("ordrs")
    assert kinds(desk, vhost="/") == ["unroutable", "fault-rule", "fault-rule"]
    assert kinds(desk, vhost="other") == ["fault-rule"]
    assert desk.get("/_broker/attention", vhost="none") == (404, "no vhost 'none'")


def test_many_findings_are_cut(desk: Desk) -> None:
    for _ in range(ROWS_MAX + 1):
        desk.broker.faults.add(Rule("confirm_nack"))
    assert len(kinds(desk)) == ROWS_MAX


def test_a_user_without_the_tag_monitoring_is_refused(desk: Desk) -> None:
    desk.be("management")
    assert desk.get("/_broker/attention")[0] == 401


def test_a_queue_that_is_deleted_meanwhile_is_left_out(desk: Desk) -> None:
    peer = desk.lab.connect()
    peer.declare("q")
    for _ in range(12):
        peer.publish("q")
    steps = desk.steps("GET", "/_broker/attention")
    found = None
    next(steps)
    peer.call(commands.Queue.Delete(queue="q"))
    try:
        while True:
            next(steps)
    except StopIteration as end:
        found = end.value
    assert found == []


def test_names_that_are_not_text_are_shown(desk: Desk) -> None:
    desk.lab.connect().publish("k")
    # A client of AMQP may send any octets.
    desk.lab.vhost.exchanges[""].unroutable_key = "k\udcff"
    assert "'k" in desk.get("/_broker/attention")[1][0]["sentence"]
