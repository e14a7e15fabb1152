from __future__ import annotations

import pytest
from pamqp import commands

from amqp_broker.broker.counting.incident import RECENT_MS
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.attention.finding import Finding
from amqp_broker.management.attention.queue_findings import findings_of
from amqp_broker.management.node.rates import Rates
from tests.peer import Lab, Peer


class Watched:
    """A broker with charts, whose queue `q` is looked at."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.lab.broker.now = self.lab.now
        self.rates = Rates(self.lab.broker)
        self.rates.start()
        self.publisher = self.lab.connect()

    def declare(self, arguments: dict[str, object] | None = None, queue: str = "q") -> None:
        self.publisher.declare(queue, arguments=arguments or {})

    def publish(self, count: int, queue: str = "q") -> None:
        for _ in range(count):
            self.publisher.publish(queue)

    def consumer(self, prefetch: int, tag: str = "c") -> Peer:
        peer = self.lab.connect()
        peer.call(commands.Basic.Qos(prefetch_count=prefetch))
        peer.consume("q", tag)
        return peer

    def wait(self, seconds: int = 1) -> None:
        self.lab.advance(1000 * seconds)
        self.lab.broker.now = self.lab.now

    def findings(self, queue: str = "q") -> list[Finding]:
        broker = self.lab.broker
        broker.collect_counts()
        finished(broker.incidents.look())
        return list(findings_of(self.lab.vhost.queues[queue], self.rates, broker.real_now()))

    def finding(self, queue: str = "q") -> Finding:
        [finding] = self.findings(queue)
        return finding

    def age_s(self) -> float:
        since = self.finding().since_ms
        assert since is not None
        return (self.lab.now - since) / 1000


@pytest.fixture
def watched() -> Watched:
    watched = Watched()
    watched.wait(60)
    return watched


# Queues without consumers


def test_a_queue_that_grows_without_a_consumer_is_found_at_once(watched: Watched) -> None:
    watched.declare()
    watched.publish(12)
    finding = watched.finding()
    assert (finding.kind, finding.level) == ("no-consumer", "warning")
    assert finding.sentence == "Queue 'q' has no consumer, and has grown by 12 to 12 messages."
    assert finding.place == {"vhost": "/", "queue": "q"}


def test_the_time_of_growth_is_that_of_its_begin(watched: Watched) -> None:
    watched.declare()
    watched.publish(5)
    watched.wait(30)
    watched.publish(20)
    watched.wait(20)
    assert watched.finding().sentence == "Queue 'q' has no consumer, and has grown by 25 to 25 messages."
    assert watched.age_s() == pytest.approx(50, abs=5)


def test_a_queue_that_does_not_grow_is_no_finding(watched: Watched) -> None:
    watched.declare()
    watched.publish(12)
    watched.wait(RECENT_MS // 1000 + 5)
    watched.publish(9)
    assert watched.findings() == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-message-ttl": 600_000, "x-dead-letter-exchange": ""},
        {"x-queue-type": "stream"},
    ],
)
def test_a_queue_whose_messages_wait_or_stay_on_purpose_needs_no_consumer(
    watched: Watched, arguments: dict[str, object]
) -> None:
    watched.publisher.declare("q", durable=True, arguments=arguments)
    watched.publish(20)
    assert watched.findings() == []


# Consumers


def test_a_consumer_that_settles_nothing_while_messages_wait_is_named(watched: Watched) -> None:
    watched.declare()
    watched.publish(20)
    watched.consumer(3, "stuck")
    watched.wait(25)
    assert watched.findings() == []
    watched.wait(10)
    finding = watched.finding()
    assert finding.kind == "idle-consumer"
    assert finding.sentence == (
        "Consumer 'stuck' (connection '127.0.0.1:40001 -> 127.0.0.1:5672') settles nothing of queue 'q': "
        "it holds 3 of 3 unacked messages, and 17 messages wait."
    )
    assert finding.place["connection"] == "127.0.0.1:40001 -> 127.0.0.1:5672"
    assert watched.age_s() == pytest.approx(35, abs=5)


def test_a_consumer_that_hoards_messages_is_named_too(watched: Watched) -> None:
    watched.declare()
    watched.consumer(0, "hoards")
    for _ in range(8):
        watched.publish(10)
        watched.wait(5)
    finding = watched.finding()
    assert finding.kind == "idle-consumer"
    assert "holds 80 of 80 unacked messages." in finding.sentence


def test_the_consumer_that_holds_most_is_named(watched: Watched) -> None:
    watched.declare()
    watched.publish(20)
    watched.consumer(1, "few")
    watched.consumer(5, "many")
    watched.wait(35)
    assert watched.finding().place["consumer_tag"] == "many"


def test_a_consumer_that_holds_nothing_is_not_idle(watched: Watched) -> None:
    watched.declare()
    # Its socket is full, so that it gets nothing.
    watched.consumer(1).session.pause()
    watched.publish(5)
    assert watched.publisher.get("q", no_ack=False)
    watched.wait(70)
    assert watched.findings() == []


def test_one_long_task_with_nothing_behind_it_is_no_finding(watched: Watched) -> None:
    watched.declare()
    watched.publish(1)
    watched.consumer(1)
    watched.wait(300)
    assert watched.findings() == []


def test_a_consumer_that_acks_is_no_finding(watched: Watched) -> None:
    watched.declare()
    peer = watched.consumer(2)
    for _ in range(8):
        watched.publish(2)
        peer.send(commands.Basic.Ack(0, multiple=True))
        watched.wait(5)
    assert watched.findings() == []


def test_a_consumer_that_rejects_does_not_hoard(watched: Watched) -> None:
    watched.declare()
    peer = watched.consumer(0)
    for _ in range(8):
        watched.publish(12)
        peer.send(commands.Basic.Nack(0, multiple=True, requeue=False))
        watched.wait(5)
    watched.publish(30)
    assert [finding.kind for finding in watched.findings()] == ["dead-letters"]


def test_the_slowest_consumer_of_a_queue_that_grows_is_named(watched: Watched) -> None:
    watched.declare()
    quick, slow = watched.consumer(4, "quick"), watched.consumer(1, "slow")
    for _ in range(60):
        watched.publish(10)
        watched.wait()
        quick.send(commands.Basic.Ack(0, multiple=True))
        slow.send(commands.Basic.Ack(0, multiple=True))
    finding = watched.finding()
    assert finding.kind == "slow-consumer"
    assert "its 2 consumers take 5." in finding.sentence
    assert finding.sentence.endswith(
        "a second. The slowest: Consumer 'slow' (connection '127.0.0.1:40002 -> 127.0.0.1:5672')."
    )


def test_a_backlog_that_shrinks_is_no_finding(watched: Watched) -> None:
    watched.declare()
    watched.publish(500)
    peer = watched.consumer(10)
    for _ in range(30):
        watched.publish(5)
        watched.wait()
        peer.send(commands.Basic.Ack(0, multiple=True))
    assert watched.findings() == []


# Retries


def test_messages_that_a_consumer_returns_again_and_again_are_a_loop(watched: Watched) -> None:
    watched.declare()
    peer = watched.consumer(1)
    watched.publish(1)
    for _ in range(25):
        peer.send(commands.Basic.Nack(0, multiple=True, requeue=True))
        watched.wait()
    finding = watched.finding()
    assert finding.kind == "retry-loop"
    assert finding.sentence == (
        "Messages of queue 'q' return and are delivered again: 25 of the 26 deliveries of the last minute were "
        "redeliveries, and 0 were acked."
    )
    assert finding.place["consumer_tag"] == "c"


def test_some_redeliveries_among_acks_are_no_loop(watched: Watched) -> None:
    watched.declare()
    peer = watched.consumer(1)
    for _ in range(25):
        watched.publish(1)
        peer.send(commands.Basic.Nack(0, multiple=True, requeue=True))
        peer.send(commands.Basic.Ack(0, multiple=True))
        watched.wait()
    watched.publish(1)
    assert watched.findings() == []


def test_a_message_that_goes_round_by_way_of_dead_letters_is_a_loop(watched: Watched) -> None:
    watched.declare({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait"})
    watched.declare({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-message-ttl": 100}, "wait")
    peer = watched.consumer(1)
    watched.publish(1)
    for _ in range(11):
        peer.send(commands.Basic.Nack(0, multiple=True, requeue=False))
        watched.wait()
    loop, letters = watched.findings()
    assert (loop.kind, letters.kind) == ("retry-loop", "dead-letters")
    assert loop.sentence.endswith("one has been rejected 11 times.")
    assert watched.findings("wait") == []


# Messages that are given up


def reject(watched: Watched, count: int) -> None:
    peer = watched.lab.connect()
    for _ in range(count):
        assert peer.get("q", no_ack=False)
    peer.send(commands.Basic.Nack(0, multiple=True, requeue=False))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "were lost (2 rejected) in the last minute: it has no dead-letter exchange."),
        (
            {"x-dead-letter-exchange": "amq.fanout"},
            "were lost (2 rejected) in the last minute: the dead-letter exchange 'amq.fanout' has no bindings.",
        ),
        (
            {"x-dead-letter-exchange": "dlx"},
            "were lost (2 rejected) in the last minute: there is no exchange 'dlx'.",
        ),
        (
            {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
            "were lost (2 rejected) in the last minute: there is no queue 'dead'.",
        ),
        (
            {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"},
            "were dead-lettered (2 rejected) to queue 'q' in the last minute.",
        ),
        (
            {"x-dead-letter-exchange": ""},
            "were dead-lettered (2 rejected) to the queues that their routing keys name in the last minute.",
        ),
    ],
)
def test_rejected_messages_are_a_finding_that_says_where_they_went(
    watched: Watched, arguments: dict[str, object], sentence: str
) -> None:
    watched.declare(arguments)
    watched.publish(2)
    reject(watched, 2)
    finding = watched.finding()
    assert (finding.kind, finding.sentence) == ("dead-letters", f"2 messages of queue 'q' {sentence}")


@pytest.mark.parametrize(
    ("kind", "arguments", "keys", "home"),
    [
        ("fanout", {}, ["", ""], "failed"),
        ("direct", {"x-dead-letter-routing-key": "f"}, ["f", "other"], "failed"),
        ("topic", {"x-dead-letter-routing-key": "f.q"}, ["f.*", "other"], "failed"),
        # The key of each message decides.
        ("direct", {}, ["f", "g"], "failed"),
    ],
)
def test_the_only_queue_that_an_exchange_has_for_dead_letters_is_named(
    watched: Watched, kind: str, arguments: dict[str, object], keys: list[str], home: str
) -> None:
    watched.declare({"x-dead-letter-exchange": f"amq.{kind}", **arguments})
    watched.declare(queue="failed")
    for key in keys:
        watched.publisher.call(commands.Queue.Bind(queue="failed", exchange=f"amq.{kind}", routing_key=key))
    watched.publish(1)
    reject(watched, 1)
    finding = watched.finding()
    assert f"(1 rejected) to queue '{home}' by exchange 'amq.{kind}' in the last" in finding.sentence
    assert finding.place == {"vhost": "/", "queue": "q", "dead_letter_queue": home}
    watched.declare(queue="others")
    watched.publisher.call(commands.Queue.Bind(queue="others", exchange=f"amq.{kind}", routing_key=keys[0]))
    finding = watched.finding()
    assert f"was dead-lettered (1 rejected) to exchange 'amq.{kind}' in the last" in finding.sentence
    assert "dead_letter_queue" not in finding.place


def test_the_time_of_dead_letters_is_said_in_minutes(watched: Watched) -> None:
    watched.declare()
    watched.publish(1)
    reject(watched, 1)
    assert watched.findings()
    watched.wait(150)
    assert "1 message of queue 'q' was lost (1 rejected) in the last 3 minutes:" in watched.finding().sentence


def test_dead_letters_are_no_finding_any_more_after_a_time(watched: Watched) -> None:
    watched.declare()
    watched.publish(1)
    reject(watched, 1)
    assert watched.findings()
    watched.wait(RECENT_MS // 1000)
    assert watched.findings() == []


def test_a_queue_that_keeps_the_newest_messages_loses_none(watched: Watched) -> None:
    watched.declare({"x-max-length": 2, "x-message-ttl": 1000})
    watched.publish(5)
    watched.wait(5)
    assert watched.findings() == []


def test_messages_beyond_a_length_that_have_a_dead_letter_exchange_are_a_finding(watched: Watched) -> None:
    watched.declare({"x-max-length": 2, "x-dead-letter-exchange": "amq.fanout"})
    watched.publish(5)
    assert "(3 beyond the maximum length)" in watched.finding().sentence


def test_expired_messages_of_a_queue_with_a_consumer_are_a_finding(watched: Watched) -> None:
    watched.declare({"x-message-ttl": 1000, "x-dead-letter-exchange": "amq.fanout"})
    watched.consumer(1)
    watched.publish(3)
    watched.wait(5)
    assert "2 messages of queue 'q' were lost (2 expired) in" in watched.finding().sentence
