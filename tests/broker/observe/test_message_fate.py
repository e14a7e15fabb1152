from __future__ import annotations

import pytest
from pamqp.commands import Basic, Channel, Confirm, Exchange, Queue, Tx
from pamqp.common import FieldTable

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.observe.event_log import BYTES_MAX, EventLog
from amqp_broker.broker.observe.matching import Criteria
from amqp_broker.broker.observe.message_fate import ELSEWHERE, GONE, READY, UNACKED, Fate, fate, named
from amqp_broker.broker.operations.moving import move_to_queue
from amqp_broker.broker.queues.stream import StreamQueue
from amqp_broker.broker.scheduling.portions import finished
from tests.peer import Lab, Peer
from tests.present import present


@pytest.fixture
def log(lab: Lab) -> EventLog:
    return lab.broker.event_logs.start(lab.vhost)


@pytest.fixture
def peer(lab: Lab, log: EventLog) -> Peer:
    peer = lab.connect()
    peer.declare("q")
    return peer


def told(log: EventLog, queue: str = "q") -> Fate:
    return fate(log.timeline(1), queue, ["q"])


def test_each_delivery_and_return_changes_the_fate(log: EventLog, peer: Peer) -> None:
    peer.publish("q", b"x")
    assert told(log) == Fate(READY, ("It is here, ready.",))
    peer.get("q", no_ack=False)
    assert told(log).state == UNACKED
    peer.send(Basic.Nack(delivery_tag=1, requeue=True))
    peer.get("q", no_ack=False)
    peer.send(Basic.Nack(delivery_tag=2, requeue=True))
    assert told(log).state == READY
    assert told(log).sentences[-1] == "It was delivered 2 times."
    peer.get("q", no_ack=True)
    assert told(log).state == GONE
    assert told(log).sentences[1].endswith("which takes messages without acks.")


def test_a_deleted_queue_is_the_reason(log: EventLog, peer: Peer) -> None:
    peer.publish("q", b"x")
    peer.call(Queue.Delete(queue="q"))
    assert told(log) == Fate(GONE, ("It was here.", "The queue was deleted."))


def test_a_rolled_back_message_never_came(log: EventLog, peer: Peer) -> None:
    peer.call(Tx.Select())
    peer.publish("q", b"x")
    assert told(log).sentences[:3] == (
        "It has not come here yet.",
        "It was published in a transaction, to the default exchange with routing key 'q'.",
        "The transaction has not been committed.",
    )
    peer.call(Tx.Rollback())
    assert told(log).state == ELSEWHERE
    assert told(log).sentences[::2] == ("It never came here.", "The transaction was rolled back.")


def test_a_committed_message_is_here(log: EventLog, peer: Peer) -> None:
    peer.call(Tx.Select())
    peer.publish("q", b"x")
    peer.call(Tx.Commit())
    assert told(log) == Fate(READY, ("It is here, ready.",))
    assert told(log, "other").sentences[2] == "The transaction was committed, which led to 'q'."


def test_a_channel_that_closes_before_its_commit_loses_the_message(log: EventLog, peer: Peer) -> None:
    peer.call(Tx.Select())
    peer.publish("q", b"x")
    peer.disconnect()
    assert told(log).sentences[2] == "The connection ended before the commit."


def test_a_message_returns_when_its_channel_or_connection_ends(lab: Lab, log: EventLog, peer: Peer) -> None:
    peer.publish("q", b"x")
    peer.get("q", no_ack=False)
    name = peer.session.name
    peer.call(Channel.Close(200, "", 0, 0))
    assert told(log) == Fate(
        READY,
        ("It is here, ready.", f"It was delivered to {name}, channel 1, whose channel was closed: it came back."),
    )
    peer.open_channel(1)
    peer.get("q", no_ack=False)
    peer.disconnect()
    assert told(log).sentences[1].endswith("channel 1, whose connection ended: it came back.")
    assert [event.kind for event in log.timeline(1)] == ["publish", "deliver", "requeue", "deliver", "requeue"]


def test_a_delivery_that_timed_out_is_here_again() -> None:
    lab = Lab(compat="4.3", consumer_timeout_ms=60_000)
    log = lab.broker.event_logs.start(lab.vhost)
    peer = lab.connect()
    arguments: FieldTable = {"x-queue-type": "quorum", "x-consumer-timeout": 60_000}
    peer.declare("q", durable=True, arguments=arguments)
    peer.consume("q")
    peer.publish("q", b"x")
    lab.advance(200_000)
    assert told(log).state == READY
    assert told(log).sentences[1].endswith("channel 1, which did not settle it in time: it came back.")


def test_a_delayed_message_is_here_when_it_is_due(lab: Lab, log: EventLog, peer: Peer) -> None:
    arguments: FieldTable = {"x-delayed-type": "direct"}
    peer.call(Exchange.Declare(exchange="later", exchange_type="x-delayed-message", arguments=arguments))
    peer.call(Queue.Bind(queue="q", exchange="later", routing_key="q"))
    peer.publish("q", b"x", exchange="later", headers={"x-delay": 1000})
    assert told(log).state == ELSEWHERE
    assert told(log).sentences[0] == "It has not come here yet."
    assert "The exchange 'later' delays it." in told(log).sentences
    lab.advance(1000)
    assert told(log) == Fate(READY, ("It is here, ready.", "It was delayed until then."))
    peer.publish("q", b"y", exchange="later", headers={"x-delay": 1000})
    peer.call(Exchange.Delete(exchange="later"))
    lost = fate(log.timeline(2), "q")
    assert lost.sentences[0] == "It never came here."
    assert "The delayed exchange that kept it was deleted." in lost.sentences


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_a_full_queue_refuses_a_message_that_another_one_takes(log: EventLog, peer: Peer, overflow: str) -> None:
    arguments: FieldTable = {"x-max-length": 0, "x-overflow": overflow, "x-dead-letter-exchange": ""}
    peer.declare("full", arguments=arguments | {"x-dead-letter-routing-key": "q"})
    peer.publish("full", b"x", headers={"CC": ["q"]})
    assert told(log).state == READY
    assert told(log, "full").state == ELSEWHERE
    dead = overflow == "reject-publish-dlx"
    letter = ("Its dead letter (maxlen) went to 'q'.",) if dead else ()
    expected = ("It never came here.", "The queue was full and refused it.", *letter)
    assert told(log, "full").sentences[: len(expected)] == expected


def test_unacked_messages_of_a_deleted_queue_are_gone_for_good(log: EventLog, peer: Peer) -> None:
    peer.publish("q", b"x")
    peer.get("q", no_ack=False)
    peer.call(Queue.Delete(queue="q"))
    peer.send(Basic.Ack(delivery_tag=1))
    assert told(log) == Fate(GONE, ("It was here.", "The queue was deleted."))
    assert [event.kind for event in log.timeline(1)] == ["publish", "deliver", "drop"]


def test_an_auto_delete_queue_takes_what_its_last_consumer_had_not_settled(log: EventLog, peer: Peer) -> None:
    peer.declare("gone", auto_delete=True)
    peer.consume("gone")
    peer.publish("gone", b"x")
    peer.disconnect()
    assert told(log, "gone") == Fate(GONE, ("It was here.", "The queue was deleted."))


def test_a_stream_keeps_what_its_consumers_take(log: EventLog, peer: Peer) -> None:
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.send(Basic.Qos(prefetch_count=1))
    peer.expect(Basic.QosOk)
    peer.consume("s")
    peer.publish("s", b"x")
    peer.send(Basic.Ack(delivery_tag=1))
    assert told(log, "s").state == READY
    assert told(log, "s").sentences[1].endswith("channel 1; a stream keeps it.")
    peer.disconnect()
    assert told(log, "s").state == READY
    assert [event.kind for event in log.timeline(1)] == ["publish", "deliver", "ack"]


def test_a_stream_drops_what_is_beyond_its_retention(log: EventLog, peer: Peer) -> None:
    arguments: FieldTable = {"x-queue-type": "stream", "x-max-length-bytes": 10}
    peer.declare("s", durable=True, arguments=arguments | {"x-stream-max-segment-size-bytes": 10})
    for _ in range(3):
        peer.publish("s", bytes(100))
    assert told(log, "s") == Fate(GONE, ("It was here.", "It was beyond the retention of the stream."))


def test_a_stream_holds_no_more_octets_for_the_log_than_the_log_has(lab: Lab, log: EventLog, peer: Peer) -> None:
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    stream = lab.vhost.queues["s"]
    assert isinstance(stream, StreamQueue)
    for _ in range(70):
        peer.publish("s", bytes(1 << 20))
    # Each message has a header, too.
    assert len(stream._traced) == (BYTES_MAX >> 20) - 1
    lab.broker.event_logs.stop(lab.vhost)
    assert not stream._traced


def test_a_deleted_delayed_exchange_discards_its_messages_in_portions(lab: Lab, log: EventLog, peer: Peer) -> None:
    arguments: FieldTable = {"x-delayed-type": "direct"}
    peer.call(Exchange.Declare(exchange="later", exchange_type="x-delayed-message", arguments=arguments))
    for _ in range(3000):
        peer.publish("q", b"x", exchange="later", headers={"x-delay": 60_000})
    lab.drain()
    peer.call(Exchange.Delete(exchange="later"))
    at_once = log.count(Criteria("drop"))
    lab.drain()
    assert 0 < at_once < log.count(Criteria("drop")) == 3000


def test_a_moved_message_is_in_the_other_queue(lab: Lab, log: EventLog, peer: Peer) -> None:
    peer.declare("other")
    peer.publish("q", b"x")
    finished(move_to_queue(lab.vhost.queues["q"], 1, lab.vhost.queues["other"]))
    assert told(log) == Fate(GONE, ("It was here.", "It was moved to 'other'."))
    assert told(log, "other") == Fate(READY, ("It is here, ready.", "It was moved from 'q'."))


def test_a_history_sends_a_message_again(log: EventLog, peer: Peer) -> None:
    peer.call(Exchange.Declare(exchange="recent", exchange_type="x-recent-history"))
    peer.publish("", b"x", exchange="recent")
    peer.call(Queue.Bind(queue="q", exchange="recent"))
    assert told(log).state == READY
    assert told(log).sentences[1] == "It came from the history of an exchange, to which the queue was bound."


def test_of_a_message_and_its_dead_letter_the_one_that_is_here_counts(log: EventLog, peer: Peer) -> None:
    peer.declare("dying", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
    peer.publish("dying", b"x", headers={"CC": ["q"]})
    peer.get("dying", no_ack=False)
    peer.send(Basic.Reject(delivery_tag=1, requeue=False))
    peer.get("q")
    assert told(log).state == READY
    peer.get("q")
    assert told(log).state == GONE


def test_a_message_of_another_queue_is_elsewhere(log: EventLog, peer: Peer) -> None:
    peer.publish("q", b"x")
    assert told(log, "other") == Fate(
        ELSEWHERE,
        (
            "It never came here.",
            "It was published to the default exchange with routing key 'q', which led to 'q'.",
            "This queue is bound to the default exchange with 'q'.",
        ),
    )


def test_many_names_are_counted() -> None:
    assert named([]) == "no queue"
    assert named(["a", "b"]) == "'a', 'b'"
    assert named([str(number) for number in range(7)]) == "'0', '1', '2', '3', '4' and 2 more"


def test_a_fault_that_keeps_a_message_from_its_queues_is_the_reason(lab: Lab, log: EventLog, peer: Peer) -> None:
    lab.broker.faults.add(Rule("return", times=1))
    peer.publish("q", b"x", mandatory=True)
    assert told(log) == Fate(
        ELSEWHERE,
        (
            "It never came here.",
            "It was published to the default exchange with routing key 'q', and the fault return kept it from 'q'.",
            "It was returned to its publisher.",
            "This queue is bound to the default exchange with 'q'.",
            "The fault return made the broker return it.",
        ),
    )


def test_a_nacked_message_without_a_queue_led_to_none(lab: Lab, log: EventLog, peer: Peer) -> None:
    peer.call(Confirm.Select())
    lab.broker.faults.add(Rule("confirm_nack", times=1))
    peer.publish("nowhere", b"x")
    ways = told(log).sentences[1:3]
    assert ways[0].endswith("with routing key 'nowhere', which led to no queue.")
    assert ways[1] == "It was refused with a nack."


@pytest.mark.parametrize("action", ["cut", "reset", "black_hole", "close_channel", "close_connection"])
def test_a_publish_that_a_fault_cuts_off_has_a_history(lab: Lab, log: EventLog, peer: Peer, action: str) -> None:
    lab.broker.faults.add(Rule(action, on="publish", times=1))
    peer.publish("q", b"x")
    [event] = log.timeline(1)
    assert log.is_first(event)
    assert present(log.message_of(event)).body == b"x"
    assert told(log) == Fate(
        ELSEWHERE,
        (
            "It never came here.",
            "It was published to the default exchange with routing key 'q'.",
            "This queue is bound to the default exchange with 'q'.",
            f"The fault {action} came before the broker took it.",
        ),
    )


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (Rule("confirm_drop"), "The fault confirm_drop lost its confirm: the publisher never got one."),
        (Rule("confirm_delay", delay_ms=70), "The fault confirm_delay sent its confirm 70 ms late."),
        (Rule("cut", on="confirm"), "The fault cut came in place of its confirm."),
    ],
    ids=lambda value: value.action if isinstance(value, Rule) else "",
)
def test_a_fault_of_the_confirm_is_said(lab: Lab, log: EventLog, peer: Peer, rule: Rule, sentence: str) -> None:
    peer.call(Confirm.Select())
    lab.broker.faults.add(rule)
    peer.publish("q", b"x")
    assert told(log).state == READY
    assert told(log).sentences[-1] == sentence


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (Rule("duplicate", times=1), "The fault duplicate delivered it twice."),
        (Rule("delay_delivery", delay_ms=70), "The fault delay_delivery kept its delivery back, for up to 70 ms."),
        (Rule("hold_delivery"), "The fault hold_delivery kept its delivery back."),
        (Rule("cancel_consumer", on="deliver", times=1), "The fault cancel_consumer came with its delivery."),
    ],
    ids=lambda value: value.action if isinstance(value, Rule) else "",
)
def test_a_fault_of_the_delivery_is_said(lab: Lab, log: EventLog, peer: Peer, rule: Rule, sentence: str) -> None:
    lab.broker.faults.add(rule)
    peer.consume("q")
    peer.publish("q", b"x")
    assert sentence in told(log).sentences


def test_a_lost_ack_is_said(lab: Lab, log: EventLog, peer: Peer) -> None:
    lab.broker.faults.add(Rule("drop_ack", times=1))
    peer.publish("q", b"x")
    peer.get("q", no_ack=False)
    peer.send(Basic.Ack(delivery_tag=1))
    assert told(log).state == UNACKED
    assert told(log).sentences[-1] == "The fault drop_ack lost its ack: for the broker, it is still unacked."
