"""The deduplication exchange behaves as rabbitmq-message-deduplication says.

rabbit_message_deduplication_exchange.ex   arguments; a duplicate is routed to no queue
cache.ex                                   an entry ends at its deadline; a full cache makes room
rabbit_exchange.erl (RabbitMQ)             what a type routes nowhere goes to the alternate exchange
"""

from __future__ import annotations

from typing import Any

import pytest
from pamqp.commands import Basic, Confirm, Exchange, Queue, Tx

from amqp_broker.amqp.deduplication_key import HEADER
from amqp_broker.broker.exchanges.deduplication import STALE_MIN, DeduplicationExchange
from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.observe.message_fate import ELSEWHERE, fate
from amqp_broker.broker.operations import restoring
from tests.broker_parts import bind, new_broker, new_exchange, new_message, new_queue
from tests.memory_journal import MemoryJournal
from tests.peer import Lab, Peer

KIND = "x-message-deduplication"


def declared(lab: Lab, size: int = 3, **arguments: Any) -> DeduplicationExchange:
    """Declare an exchange x, to which a queue q is bound."""
    table = {"x-cache-size": size, **{f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}}
    exchange = new_exchange(lab.vhost, "x", KIND, arguments=table)
    assert isinstance(exchange, DeduplicationExchange)
    bind(exchange, new_queue(lab.vhost), lab.vhost)
    return exchange


def put(peer: Peer, value: Any, body: bytes = b"", exchange: str = "x", **options: Any) -> None:
    headers = {HEADER: value, **options.pop("headers", {})}
    peer.publish("k", body, exchange=exchange, headers=headers, **options)


def bodies(lab: Lab, queue: str = "q") -> list[bytes]:
    return [message.body for message in lab.vhost.queues[queue].messages()]


SIZE = "Missing or invalid argument, 'x-cache-size' must be an integer greater than 0"
TTL = "Invalid argument, 'x-cache-ttl' must be an integer greater than 0"
PERSISTENCE = "Invalid argument, 'x-cache-persistence' must be either 'disk' or 'memory'"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, SIZE),
        *(({"x-cache-size": value}, SIZE) for value in (0, -1, "0", "", "x", "9" * 30, 1.0, True, None, [1])),
        *(({"x-cache-size": 1, "x-cache-ttl": value}, TTL) for value in (0, -1, "0", "1.5", 1.0, False, None)),
        *(({"x-cache-size": 1, "x-cache-persistence": value}, PERSISTENCE) for value in ("", "ram", 1, None, ["disk"])),
        (
            {"x-cache-size": 1, HEADER: 1},
            "Invalid argument, 'x-deduplication-header' must be the name of a header",
        ),
    ],
)
def test_wrong_arguments_close_the_channel(arguments: dict[str, Any], text: str, peer: Peer) -> None:
    peer.send(Exchange.Declare(exchange="x", exchange_type=KIND, arguments=arguments))
    assert peer.expect_channel_close(406) == f"PRECONDITION_FAILED - {text}"
    assert "x" not in peer.lab.vhost.exchanges


@pytest.mark.parametrize("arguments", [{"x-cache-size": "5"}, {"x-cache-size": 5, "x-cache-ttl": "7"}])
def test_numbers_may_be_texts(arguments: dict[str, Any], peer: Peer) -> None:
    peer.call(Exchange.Declare(exchange="x", exchange_type=KIND, arguments=arguments))
    assert peer.lab.vhost.exchanges["x"].size == 5


def test_a_message_that_was_seen_before_is_not_routed(peer: Peer) -> None:
    declared(peer.lab)
    put(peer, "a", b"1")
    put(peer, "a", b"2")
    put(peer, "b", b"3")
    # The entry outlives the message.
    peer.call(Queue.Purge(queue="q"))
    put(peer, "a", b"4")
    assert bodies(peer.lab) == []


def test_messages_without_the_header_are_always_routed(peer: Peer) -> None:
    exchange = declared(peer.lab)
    peer.publish("k", b"1", exchange="x")
    peer.publish("k", b"2", exchange="x", headers={"other": 1})
    peer.publish("k", b"3", exchange="x", headers={HEADER: {"a": 1}})
    assert bodies(peer.lab) == [b"1", b"2", b"3"]
    assert exchange.entry_count == 0


def test_an_argument_names_the_header(peer: Peer) -> None:
    declared(peer.lab, deduplication_header="id")
    for body in (b"1", b"2"):
        put(peer, body.decode(), body, headers={"id": 1})
    assert bodies(peer.lab) == [b"1"]


def test_routing_keys_do_not_count(peer: Peer) -> None:
    declared(peer.lab)
    peer.publish("one", b"1", exchange="x", headers={HEADER: "a", "CC": ["two"]})
    peer.publish("two", b"2", exchange="x", headers={HEADER: "a"})
    assert bodies(peer.lab) == [b"1"]


def test_an_entry_ends_when_its_time_has_passed(peer: Peer) -> None:
    declared(peer.lab, cache_ttl=1000)
    put(peer, "a", b"1")
    peer.lab.advance_clock(999)
    put(peer, "a", b"2")
    peer.lab.advance_clock(1)
    put(peer, "a", b"3")
    # A duplicate does not prolong the entry, a new message does.
    peer.lab.advance_clock(999)
    put(peer, "a", b"4")
    assert bodies(peer.lab) == [b"1", b"3"]


@pytest.mark.parametrize(("ttl", "lives_ms"), [(50, 50), (5000, 5000), ("50", 1000), (True, 1000), (-1, 0), (0, 0)])
def test_a_header_overrides_the_time(ttl: Any, lives_ms: int, peer: Peer) -> None:
    declared(peer.lab, cache_ttl=1000)
    put(peer, "a", b"1", headers={"x-cache-ttl": ttl})
    if lives_ms:
        peer.lab.advance_clock(lives_ms - 1)
        put(peer, "a", b"2")
        peer.lab.advance_clock(1)
    put(peer, "a", b"3")
    assert bodies(peer.lab) == [b"1", b"3"]


def test_without_a_time_an_entry_stays(peer: Peer) -> None:
    declared(peer.lab)
    put(peer, "a", b"1")
    put(peer, "b", b"1", headers={"x-cache-ttl": 2**62})
    peer.lab.advance_clock(86_400_000)
    put(peer, "a", b"2")
    put(peer, "b", b"2")
    assert bodies(peer.lab) == [b"1", b"1"]


def test_a_full_cache_forgets_the_oldest(peer: Peer) -> None:
    exchange = declared(peer.lab, size=2)
    for value in ("a", "b", "c"):
        put(peer, value)
    assert exchange.entry_count == 2
    put(peer, "c", b"duplicate")
    put(peer, "b", b"duplicate")
    put(peer, "a", b"forgotten")
    assert bodies(peer.lab)[3:] == [b"forgotten"]


def test_expired_entries_make_room_first(peer: Peer) -> None:
    declared(peer.lab, size=2)
    put(peer, "old")
    put(peer, "short", headers={"x-cache-ttl": 10})
    peer.lab.advance_clock(10)
    put(peer, "new")
    put(peer, "old", b"duplicate")
    assert b"duplicate" not in bodies(peer.lab)


def test_deadlines_of_entries_that_are_gone_do_not_pile_up(lab: Lab) -> None:
    exchange = declared(lab, size=1, cache_ttl=10_000)
    for number in range(1000):
        lab.vhost.route(exchange, ["k"], {HEADER: number}, new_message())
    assert exchange.entry_count == 1
    assert len(exchange._deadlines) <= STALE_MIN + 3


def test_a_duplicate_is_confirmed_with_an_ack(peer: Peer) -> None:
    declared(peer.lab)
    peer.call(Confirm.Select())
    for number in (1, 2):
        put(peer, "a")
        assert peer.expect(Basic.Ack).delivery_tag == number


def test_a_mandatory_duplicate_is_returned_and_confirmed(peer: Peer) -> None:
    declared(peer.lab)
    peer.call(Confirm.Select())
    put(peer, "a", mandatory=True)
    peer.expect(Basic.Ack)
    put(peer, "a", mandatory=True)
    assert peer.expect(Basic.Return).reply_text == "NO_ROUTE"
    peer.expect_content()
    peer.expect(Basic.Ack)


def test_a_duplicate_goes_to_the_alternate_exchange(peer: Peer) -> None:
    new_exchange(peer.lab.vhost, "again", "fanout")
    bind(peer.lab.vhost.exchanges["again"], new_queue(peer.lab.vhost, "duplicates"), peer.lab.vhost)
    new_exchange(peer.lab.vhost, "y", KIND, arguments={"x-cache-size": 1, "alternate-exchange": "again"})
    bind(peer.lab.vhost.exchanges["y"], new_queue(peer.lab.vhost), peer.lab.vhost)
    put(peer, "a", b"1", "y")
    put(peer, "a", b"2", "y")
    assert (bodies(peer.lab), bodies(peer.lab, "duplicates")) == ([b"1"], [b"2"])


def test_a_message_of_another_exchange_is_compared(peer: Peer) -> None:
    exchange = declared(peer.lab)
    bind(peer.lab.vhost.exchanges["amq.fanout"], exchange, peer.lab.vhost)
    put(peer, "a", b"1", "amq.fanout")
    put(peer, "a", b"2", "amq.fanout")
    put(peer, "a", b"3")
    assert bodies(peer.lab) == [b"1"]


def test_dead_letters_are_compared(peer: Peer) -> None:
    declared(peer.lab)
    peer.declare("dying", arguments={"x-dead-letter-exchange": "x", "x-message-ttl": 10})
    for body in (b"1", b"2"):
        peer.publish("dying", body, headers={HEADER: "a"})
    peer.lab.advance(10)
    assert bodies(peer.lab) == [b"1"]


def test_delayed_messages_are_compared_when_they_are_due(lab: Lab, peer: Peer) -> None:
    arguments = {"x-delayed-type": KIND, "x-cache-size": 1, "x-cache-persistence": "disk"}
    lab.broker.journal = MemoryJournal()
    new_exchange(lab.vhost, "x", "x-delayed-message", is_durable=True, arguments=arguments)
    bind(lab.vhost.exchanges["x"], new_queue(lab.vhost), lab.vhost)
    put(peer, "a", b"1", headers={"x-delay": 1000})
    put(peer, "a", b"2")
    lab.advance(1000)
    assert bodies(lab) == [b"2"]


def test_a_publish_of_a_transaction_is_remembered_at_once(peer: Peer) -> None:
    declared(peer.lab)
    peer.call(Tx.Select())
    put(peer, "a", b"1")
    peer.call(Tx.Rollback())
    put(peer, "a", b"2")
    peer.call(Tx.Commit())
    assert bodies(peer.lab) == []


def test_a_publish_that_a_fault_refuses_is_not_remembered(peer: Peer) -> None:
    declared(peer.lab)
    peer.lab.broker.faults.add(Rule(vhost="/", action="confirm_nack", exchange="x", times=1))
    peer.call(Confirm.Select())
    put(peer, "a", b"1")
    peer.expect(Basic.Nack)
    put(peer, "a", b"2")
    peer.expect(Basic.Ack)
    assert bodies(peer.lab) == [b"2"]


def test_a_new_exchange_of_that_name_has_seen_nothing(peer: Peer) -> None:
    exchange = declared(peer.lab)
    put(peer, "a", b"1")
    peer.lab.vhost.delete_exchange("x", if_unused=False)
    assert exchange.entry_count == 0
    bind(
        new_exchange(peer.lab.vhost, "x", KIND, arguments={"x-cache-size": 1}),
        peer.lab.vhost.queues["q"],
        peer.lab.vhost,
    )
    put(peer, "a", b"2")
    assert bodies(peer.lab) == [b"1", b"2"]


def test_the_fate_of_a_duplicate_says_why(lab: Lab, peer: Peer) -> None:
    declared(lab)
    log = lab.broker.event_logs.start(lab.vhost)
    put(peer, "a")
    put(peer, "a")
    found = fate(log.timeline(2), "q", ["k"])
    assert found.state == ELSEWHERE
    assert found.sentences[:3] == (
        "It never came here.",
        "It was published to the exchange 'x' with routing key 'k', which led to no queue.",
        "The exchange 'x' dropped it as a duplicate.",
    )


def test_duplicates_are_no_losses(lab: Lab, peer: Peer) -> None:
    exchange = declared(lab)
    assert not exchange.is_watched
    lab.vhost.remove_queue(lab.vhost.queues["q"])
    assert exchange.is_watched


def test_a_trace_without_a_log_notes_nothing(lab: Lab, peer: Peer) -> None:
    declared(lab)
    lab.vhost.tracing.start()
    put(peer, "a")
    put(peer, "a")
    assert lab.vhost.trace is not None
    assert not lab.vhost.trace._noted


def kept(disk: Any = None, *, is_durable: bool = True, persistence: str = "disk") -> tuple[Lab, MemoryJournal]:
    """Return a broker with what was committed, and a durable exchange of size 3."""
    lab, journal = Lab(), MemoryJournal(disk)
    if disk is not None:
        lab.broker = new_broker(journal, now=lab.now, has_defaults=False)
        journal.is_restoring = True
        assert restoring.restore(lab.broker, journal.definitions_of)
        journal.is_restoring = False
        return lab, journal
    lab.broker = new_broker(journal, now=lab.now)
    arguments = {"x-cache-size": 3, "x-cache-ttl": 1000, "x-cache-persistence": persistence}
    exchange = new_exchange(lab.vhost, "x", KIND, is_durable=is_durable, arguments=arguments)
    bind(exchange, new_queue(lab.vhost, is_durable=True), lab.vhost)
    return lab, journal


def test_a_cache_on_disk_survives_with_what_was_committed() -> None:
    lab, journal = kept()
    peer = lab.connect()
    put(peer, "a", b"1", delivery_mode=2)
    journal.commit()
    put(peer, "b", b"lost", delivery_mode=2)
    lab, journal = kept(journal.disk)
    peer = lab.connect()
    for value, body in (("a", b"2"), ("b", b"3")):
        put(peer, value, body, delivery_mode=2)
    assert bodies(lab) == [b"1", b"3"]
    # Times and order are kept, too.
    journal.commit()
    lab, journal = kept(journal.disk)
    peer = lab.connect()
    lab.advance_clock(999)
    put(peer, "a", b"4")
    lab.advance_clock(1)
    put(peer, "a", b"5")
    assert bodies(lab) == [b"1", b"3", b"5"]


def test_an_entry_that_made_room_is_gone_after_a_restart() -> None:
    lab, journal = kept()
    peer = lab.connect()
    for value in ("a", "b", "c", "d"):
        put(peer, value)
        journal.commit()
    lab, journal = kept(journal.disk)
    assert lab.vhost.exchanges["x"].entry_count == 3
    put(lab.connect(), "a", b"again")
    assert bodies(lab) == [b"again"]


@pytest.mark.parametrize("persistence", ["memory", "disk"])
def test_nothing_is_left_on_the_disk_of_a_deleted_exchange(persistence: str) -> None:
    lab, journal = kept(persistence=persistence)
    put(lab.connect(), "a")
    journal.commit()
    assert bool(journal.disk.messages) is (persistence == "disk")
    lab.vhost.delete_exchange("x", if_unused=False)
    journal.commit()
    assert not journal.disk.messages


def test_a_cache_in_memory_ends_with_the_process() -> None:
    lab, journal = kept(persistence="memory")
    put(lab.connect(), "a", b"1", delivery_mode=2)
    journal.commit()
    lab, journal = kept(journal.disk)
    put(lab.connect(), "a", b"2", delivery_mode=2)
    assert bodies(lab) == [b"1", b"2"]


def test_the_ack_of_a_duplicate_waits_for_the_commit_of_its_original() -> None:
    lab, journal = kept(persistence="memory")
    peer, other = lab.connect(), lab.connect()
    journal.commit()
    other.call(Confirm.Select())
    put(peer, "a", delivery_mode=2)
    put(other, "a")
    other.expect_nothing()
    journal.commit()
    lab.broker.on_committed()
    other.expect(Basic.Ack)
