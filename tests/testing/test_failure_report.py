from __future__ import annotations

from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.testing.failure_report import FailureReport
from tests.peer import Lab


def test_each_event_of_a_message_has_a_line() -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    dead: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.send(commands.Queue.Declare(queue="q", arguments=dead), commands.Queue.Declare(queue="dead"))
    lab.vhost.tracing.observe(report.add)
    peer.send(commands.Confirm.Select())
    peer.publish("q", b"m" * 100)
    peer.publish("nowhere", b"", mandatory=True)
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Nack(1, requeue=True))
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Nack(2, requeue=False))
    peer.send(commands.Basic.Get(queue="dead", no_ack=True))
    peer.publish("dead", b"")
    peer.send(commands.Queue.Purge(queue="dead"))
    name = peer.session.name
    shown = f"b'{'m' * 60}'… (100 bytes)"
    lines = [
        f"#1 publish exchange '', routing key 'q' -> 'q': {shown}",
        "#2 publish exchange '', routing key 'nowhere' -> 'nowhere': b''",
        "#2 return exchange '', routing key 'nowhere': 312 NO_ROUTE",
        f"#1 deliver queue 'q' to {name} channel 1: {shown}",
        "#1 nack queue 'q', requeued",
        f"#1 deliver queue 'q' again to {name} channel 1: {shown}",
        "#1 nack queue 'q', not requeued",
        "#3 dead_letter queue 'q' (was #1), rejected -> 'dead'",
        f"#3 deliver queue 'dead' to {name} channel 1: {shown}",
        "#4 publish exchange '', routing key 'dead' -> 'dead': b''",
        "#4 drop queue 'dead': purged",
    ]
    lines_found = [" ".join(line.split()) for line in report.text().splitlines()]
    assert [line for line in lines_found if " confirm " not in line] == lines
    assert lines_found.count("#1 confirm exchange '', routing key 'q': ack") == 1


def test_only_the_last_events_are_kept() -> None:
    lab, report = Lab(), FailureReport(events_max=2)
    peer = lab.connect()
    lab.vhost.tracing.observe(report.add)
    for body in (b"1", b"2", b"3"):
        peer.publish("", body, exchange="amq.fanout")
    assert report.text().splitlines() == [
        "(1 earlier events)",
        "   #2 publish     exchange 'amq.fanout', routing key '' -> no queue: b'2'",
        "   #3 publish     exchange 'amq.fanout', routing key '' -> no queue: b'3'",
    ]


def test_without_events_the_report_is_empty() -> None:
    assert FailureReport().text() == ""
