from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.testing.failure_report import FailureReport
from tests.peer import Lab


def test_each_event_of_a_message_has_a_line() -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    dead: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.send(commands.Queue.Declare(queue="q", arguments=dead), commands.Queue.Declare(queue="dead"))
    report.begin(lab.vhost)
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
        f"#1 publish exchange '', routing key 'q' -> 'q', confirmed: {shown}",
        "#2 publish exchange '', routing key 'nowhere' -> no queue, returned (312 NO_ROUTE), confirmed: b''",
        f"#1 deliver queue 'q' to {name} channel 1: {shown}",
        "#1 nack queue 'q', requeued",
        f"#1 deliver queue 'q' again to {name} channel 1: {shown}",
        "#1 nack queue 'q', not requeued",
        "#3 dead_letter queue 'q' (was #1), rejected -> 'dead'",
        f"#3 deliver queue 'dead' to {name} channel 1: {shown}",
        "#4 publish exchange '', routing key 'dead' -> 'dead', confirmed: b''",
        "#4 drop queue 'dead': purged",
    ]
    assert words(report.text()) == lines


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_only_the_last_events_are_kept() -> None:
    lab, report = Lab(), FailureReport(events_max=2)
    peer = lab.connect()
    report.begin(lab.vhost)
    for body in (b"1", b"2", b"3"):
        peer.publish("", body, exchange="amq.fanout")
    lines = [
        "   #2 publish     exchange 'amq.fanout', routing key '' -> no queue (the exchange has no bindings): b'2'",
        "   #3 publish     exchange 'amq.fanout', routing key '' -> no queue (the exchange has no bindings): b'3'",
    ]
    assert report.text().splitlines() == ["(1 earlier events)", *lines]
    assert report.text(lines_max=1).splitlines() == ["(2 earlier events; pytest -v shows more)", lines[1]]


def test_without_events_the_report_is_empty() -> None:
    assert FailureReport().text() == ""


def test_a_message_has_the_same_number_in_the_report_and_in_the_event_log() -> None:
    lab = Lab()
    peer, former, report = lab.connect(), FailureReport(), FailureReport()
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-max-length": 0}
    peer.declare("q", arguments=dead)
    former.begin(lab.vhost)
    peer.publish("q", b"1")
    report.begin(lab.vhost)
    log = lab.broker.event_logs.start(lab.vhost)
    peer.publish("q", b"2")
    assert [line.split()[0] for line in words(report.text())] == ["#3", "#3", "#4"]
    assert "(was #3)" in words(report.text())[-1]
    assert [event.number for event in log.events] == [3, 3, 4]


def test_a_message_that_is_older_than_all_reports_has_no_number() -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    peer.declare("q")
    peer.publish("q", b"1")
    report.begin(lab.vhost)
    peer.send(commands.Basic.Get(queue="q", no_ack=True))
    assert words(report.text()) == [f"deliver queue 'q' to {peer.session.name} channel 1: b'1'"]


def test_a_celery_task_is_shown_by_its_name_and_arguments() -> None:
    lab = Lab()
    peer, report = lab.connect(), reported(lab)
    peer.declare("celery")
    headers: FieldTable = {"task": "shop.charge", "argsrepr": "('7',)", "kwargsrepr": "{}", "retries": 0}
    peer.publish("celery", b'[["7"], {}, {}]', headers=headers)
    peer.publish("celery", b'[["7"], {}, {}]', headers={**headers, "argsrepr": f"({'7' * 150},)", "retries": 2})
    peer.publish("celery", b"other", headers={"task": "shop.charge"})
    bodies = [line.partition("'celery': ")[2] for line in words(report.text())]
    assert bodies == [
        "task shop.charge, args ('7',), kwargs {}",
        f"task shop.charge, args ({'7' * 99}…, kwargs {{}}, retry 2",
        "b'other'",
    ]


def test_a_late_event_log_has_a_line() -> None:
    report = reported(Lab())
    report.note_log("the log began late")
    assert words(report.text()) == ["event_log the log began late"]


def test_an_ack_joins_the_line_of_its_delivery() -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    report.begin(lab.vhost)
    peer.send(commands.Queue.Declare(queue="q"))
    peer.publish("q", b"m")
    peer.send(commands.Basic.Get(queue="q"), commands.Basic.Ack(1))
    assert words(report.text())[1:] == [f"#1 deliver queue 'q' to {peer.session.name} channel 1, acked: b'm'"]


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (
            Rule("confirm_nack"),
            "#1 publish exchange '', routing key 'q' -> no queue, nacked (fault confirm_nack): b'm'",
        ),
        (Rule("confirm_drop"), "#1 publish exchange '', routing key 'q' -> 'q' (fault confirm_drop): b'm'"),
        (
            Rule("return"),
            "#1 publish exchange '', routing key 'q' -> no queue (fault return), "
            "returned (312 NO_ROUTE), confirmed: b'm'",
        ),
        (
            Rule("close_channel", on="publish"),
            "#1 fault connection {name}, exchange '', routing key 'q' (fault close_channel), "
            "before the broker took it: b'm'",
        ),
    ],
    ids=lambda value: value.action if isinstance(value, Rule) else "",
)
def test_the_effect_of_a_fault_on_a_publish_is_marked(rule: Rule, line: str) -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    report.begin(lab.vhost)
    peer.send(commands.Queue.Declare(queue="q"), commands.Confirm.Select())
    lab.broker.faults.add(rule)
    peer.publish("q", b"m", mandatory=True)
    assert words(report.text()) == line.format(name=peer.session.name).splitlines()


def test_the_effect_of_a_fault_on_a_delivery_is_marked() -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    report.begin(lab.vhost)
    lab.broker.faults.add(Rule("duplicate"))
    lab.broker.faults.add(Rule("drop_ack"))
    peer.send(commands.Queue.Declare(queue="q"), commands.Basic.Consume(queue="q", consumer_tag="c"))
    peer.publish("q", b"m")
    peer.send(commands.Basic.Ack(1))
    name = peer.session.name
    assert words(report.text())[1:] == [
        f"#1 deliver queue 'q' to {name} channel 1 (fault duplicate): b'm'",
        f"#1 fault connection {name}, exchange '', routing key 'q' (fault drop_ack)",
    ]


def test_a_dead_letter_that_a_fault_drops_has_no_hint_at_bindings() -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    report.begin(lab.vhost)
    peer.declare("dead")
    dying = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-max-length": 0}
    peer.declare("dying", arguments=dying)
    lab.broker.faults.add(Rule("drop_dead_letter"))
    peer.publish("dying", b"m")
    assert words(report.text())[1:] == [
        "#1 drop queue 'dying': maxlen",
        "#2 dead_letter queue 'dying' (was #1), maxlen -> no queue (fault drop_dead_letter)",
    ]


def test_a_fault_of_a_connection_has_a_line() -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    report.begin(lab.vhost)
    lab.broker.faults.add(Rule("block", on="now"))
    assert words(report.text()) == [f"fault connection {peer.session.name} (fault block)"]


def test_a_message_without_a_queue_has_a_hint() -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    peer.send(
        commands.Exchange.Declare(exchange="shop", exchange_type="topic"),
        commands.Queue.Declare(queue="orders"),
        commands.Queue.Bind(queue="orders", exchange="shop", routing_key="order.paid"),
    )
    report.begin(lab.vhost)
    peer.publish("order.payed", b"", exchange="shop")
    peer.send(commands.Queue.Delete(queue="orders"))
    assert words(report.text()) == [
        "#1 publish exchange 'shop', routing key 'order.payed' -> no queue (did you mean 'order.paid'?): b''"
    ]


def reported(lab: Lab) -> FailureReport:
    report = FailureReport()
    report.begin(lab.vhost)
    return report


def test_an_ack_of_a_stream_joins_the_delivery_to_its_consumer() -> None:
    lab = Lab()
    peer, report = lab.connect(), reported(lab)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.call(commands.Basic.Qos(prefetch_count=5))
    for tag in ("first", "second"):
        peer.consume("s", tag)
    peer.publish("s", b"m")
    # The second consumer settles; the first does not.
    peer.send(commands.Basic.Ack(2))
    name = peer.session.name
    assert words(report.text())[1:] == [
        f"#1 deliver queue 's' to {name} channel 1: b'm'",
        f"#1 deliver queue 's' to {name} channel 1, acked: b'm'",
    ]


def test_a_hint_follows_the_bindings() -> None:
    lab = Lab()
    peer, report = lab.connect(), reported(lab)
    peer.declare("q")
    peer.publish("order.paid", b"", exchange="amq.direct")
    peer.call(commands.Queue.Bind(queue="q", exchange="amq.direct", routing_key="order.payed"))
    peer.publish("order.paid", b"", exchange="amq.direct")
    peer.call(commands.Queue.Unbind(queue="q", exchange="amq.direct", routing_key="order.payed"))
    peer.publish("order.paid", b"", exchange="amq.direct")
    hints = [line.partition("no queue ")[2].partition(":")[0] for line in words(report.text())]
    assert hints == [
        "(the exchange has no bindings)",
        "(did you mean 'order.payed'?)",
        "(the exchange has no bindings)",
    ]


def test_a_delayed_message_has_a_line_when_it_is_due() -> None:
    lab = Lab()
    peer, report = lab.connect(), reported(lab)
    peer.declare("q")
    arguments: FieldTable = {"x-delayed-type": "fanout"}
    peer.call(commands.Exchange.Declare(exchange="later", exchange_type="x-delayed-message", arguments=arguments))
    peer.call(commands.Queue.Bind(queue="q", exchange="later"))
    peer.publish("k", b"m", exchange="later", headers={"x-delay": 1000})
    lab.advance(1000)
    peer.publish("k", b"n", exchange="later", headers={"x-delay": 1000})
    peer.call(commands.Exchange.Delete(exchange="later"))
    assert words(report.text()) == [
        "#1 publish exchange 'later', routing key 'k' -> delayed in 'later': b'm'",
        "#1 route exchange 'later', routing key 'k', due -> 'q'",
        "#2 publish exchange 'later', routing key 'k' -> delayed in 'later': b'n'",
        "#2 drop exchange 'later', routing key 'k': exchange_deleted",
    ]


def test_a_transaction_shows_what_was_committed() -> None:
    lab = Lab()
    peer, report = lab.connect(), reported(lab)
    peer.declare("q")
    peer.call(commands.Tx.Select())
    peer.publish("q", b"1")
    peer.call(commands.Tx.Rollback())
    peer.publish("q", b"2")
    peer.call(commands.Tx.Commit())
    peer.publish("q", b"3")
    peer.disconnect()
    assert words(report.text()) == [
        "#1 tx_publish exchange '', routing key 'q', not committed (rollback): b'1'",
        "#2 tx_publish exchange '', routing key 'q': b'2'",
        "#2 publish exchange '', routing key 'q' -> 'q': b'2'",
        "#3 tx_publish exchange '', routing key 'q', not committed (connection_closed): b'3'",
    ]


def test_a_refused_or_returned_message_has_its_reason() -> None:
    lab = Lab()
    peer, report = lab.connect(), reported(lab)
    peer.declare("q", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    peer.consume("q")
    peer.disconnect()
    assert [line for line in words(report.text()) if "publish" not in line and "deliver" not in line] == [
        "#2 refuse queue 'q': maxlen",
        "#1 requeue queue 'q': connection_closed",
    ]


@pytest.mark.parametrize(
    "rule", [Rule("hold_delivery"), Rule("delay_delivery", delay_ms=50)], ids=lambda one: one.action
)
def test_a_delivery_that_a_fault_keeps_back_has_a_line(rule: Rule) -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    peer.declare("q")
    report.begin(lab.vhost)
    lab.broker.faults.add(rule)
    peer.consume("q")
    peer.publish("q", b"x")
    line = f"#1 fault connection {peer.session.name}, exchange '', routing key 'q' (fault {rule.action})"
    assert words(report.text())[1] == f"{line}: a delivery from 'q' is kept back"
    lab.broker.faults.clear()
    lab.advance(60)
    assert words(report.text())[2].endswith(f"(fault {rule.action}): b'x'")


def test_a_publish_that_a_fault_cuts_off_has_a_line_with_its_body() -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    report.begin(lab.vhost)
    lab.broker.faults.add(Rule("cut", on="publish"))
    peer.publish("q", b"order 7")
    line = f"#1 fault connection {peer.session.name}, exchange '', routing key 'q' (fault cut)"
    assert words(report.text()) == [f"{line}, before the broker took it: b'order 7'"]


def test_a_message_has_its_id_in_its_lines() -> None:
    lab, report = Lab(), FailureReport()
    peer = lab.connect()
    peer.declare("q")
    report.begin(lab.vhost)
    peer.consume("q")
    peer.publish("q", b"x", message_id="order-7")
    assert [line.endswith(": b'x', id 'order-7'") for line in words(report.text())] == [True, True]
