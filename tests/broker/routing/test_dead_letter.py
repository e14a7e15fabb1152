"""Dead letters go to their targets with their history."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.amqp import fields
from amqp_broker.broker.queues import giving_up
from amqp_broker.broker.routing import dead_letter
from amqp_broker.broker.routing.dead_letter import DEAD_FORMS_MAX, PROPERTY_LIST_BYTES_MAX, is_cycle, with_death
from amqp_broker.broker.routing.dead_lettering import DeadLettering
from tests.peer import Lab, Peer
from tests.present import present


def declare(peer: Peer, queue: str, to: str | None = None, exchange: str = "", **arguments: Any) -> None:
    given: dict[str, Any] = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    if to is not None:
        given |= {"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": to}
    peer.declare(queue, durable="x-queue-type" in given, arguments=given)


def reject(peer: Peer, queue: str) -> None:
    """Pull the next message of a queue and reject it without requeue."""
    pulled = peer.get(queue, no_ack=False)
    assert pulled is not None
    peer.send(commands.Basic.Reject(pulled[0].delivery_tag, requeue=False))


def headers(peer: Peer, queue: str) -> dict[str, Any]:
    """Take the next message of a queue; return its headers."""
    pulled = peer.get(queue)
    assert pulled is not None
    found: dict[str, Any] = present(pulled[1].properties.headers)
    return found


def counts(found: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(death["queue"], death.get("reason", ""), death.get("count", 0)) for death in found["x-death"]]


def test_a_dead_letter_has_queue_time_and_reason_of_its_death() -> None:
    lab = Lab()
    peer = lab.connect()
    declare(peer, "dead")
    declare(peer, "q", "dead")
    peer.publish("q", b"x", headers={"a": 1})
    lab.advance(5000)
    reject(peer, "q")
    found = headers(peer, "dead")
    death = found["x-death"][0]
    assert death.pop("time").timestamp() == lab.now // 1000
    assert death == {"count": 1, "reason": "rejected", "queue": "q", "exchange": "", "routing-keys": ["q"]}
    assert found["a"] == 1
    for which in ("first", "last"):
        names = ("reason", "queue", "exchange")
        assert [found[f"x-{which}-death-{name}"] for name in names] == ["rejected", "q", ""]


def test_a_death_history_from_a_client_is_ignored() -> None:
    peer = Lab().connect()
    declare(peer, "dead")
    declare(peer, "q", "dead")
    made_up = [{"queue": "q", "reason": "rejected", "count": 7}]
    peer.publish("q", b"x", headers={"x-death": made_up, "x-first-death-reason": "boredom"})
    reject(peer, "q")
    found = headers(peer, "dead")
    assert counts(found) == [("q", "rejected", 1)]
    assert found["x-first-death-reason"] == "rejected"


def test_before_4_0_a_death_history_from_a_client_is_continued() -> None:
    peer = Lab(compat="3.13").connect()
    declare(peer, "dead")
    declare(peer, "q", "dead")
    made_up = [{"queue": "q", "reason": "rejected", "count": 7}, {"queue": "other", "reason": "expired", "count": 1}]
    peer.publish("q", b"x", headers={"x-death": made_up, "x-first-death-reason": "expired"})
    reject(peer, "q")
    found = headers(peer, "dead")
    assert counts(found) == [("q", "rejected", 8), ("other", "expired", 1)]
    assert found["x-first-death-reason"] == "expired"


@pytest.mark.parametrize("made_up", ["text", 5, [1, "x", None], [{"queue": 3}], [{"queue": "q", "reason": "rejected"}]])
def test_a_malformed_death_history_from_a_client_is_survived(made_up: Any) -> None:
    for compat in ("3.13", "4.2"):
        peer = Lab(compat=compat).connect()
        declare(peer, "dead")
        declare(peer, "q", "dead")
        peer.publish("q", b"x", headers={"x-death": made_up})
        reject(peer, "q")
        assert counts(headers(peer, "dead"))[0] == ("q", "rejected", 1)


def test_a_repeated_death_is_counted_and_moves_to_the_front() -> None:
    peer = Lab().connect()
    declare(peer, "work", "retry")
    declare(peer, "retry", "work")
    peer.publish("work", b"x")
    for _ in range(3):
        reject(peer, "work")
        reject(peer, "retry")
    found = headers(peer, "work")
    assert counts(found) == [("retry", "rejected", 3), ("work", "rejected", 3)]
    assert found["x-first-death-queue"] == "work"
    assert found["x-last-death-queue"] == "retry"


def test_a_message_that_only_expires_is_dropped_after_one_cycle() -> None:
    lab = Lab()
    peer = lab.connect()
    declare(peer, "one", "two", message_ttl=10)
    declare(peer, "two", "one", message_ttl=10)
    peer.publish("one", b"x")
    lab.advance(1000)
    assert peer.get("one") is None
    assert peer.get("two") is None


def test_a_chain_of_dead_letter_queues_does_not_recurse() -> None:
    peer = Lab().connect()
    for number in range(150):
        declare(peer, f"q{number}", f"q{number + 1}", max_length=0)
    declare(peer, "q150")
    limit = sys.getrecursionlimit()
    # The limit of calls is lowered, because a longer chain of queues takes long: each death copies the history.
    sys.setrecursionlimit(len(inspect.stack(0)) + 100)
    try:
        peer.publish("q0", b"x")
        peer.lab.drain()
    finally:
        sys.setrecursionlimit(limit)
    assert len(headers(peer, "q150")["x-death"]) == 150


def test_bcc_keys_route_every_dead_letter() -> None:
    peer = Lab().connect()
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="direct"))
    peer.declare("one", arguments={"x-dead-letter-exchange": "x"})
    peer.declare("two", arguments={"x-dead-letter-exchange": "x"})
    peer.declare("last")
    peer.call(commands.Queue.Bind(queue="two", exchange="x", routing_key="one"))
    peer.call(commands.Queue.Bind(queue="last", exchange="x", routing_key="blind"))
    peer.publish("one", b"x", headers={"BCC": ["blind"]})
    reject(peer, "one")
    reject(peer, "two")
    assert counts(headers(peer, "last")) == [("one", "rejected", 1)]
    assert counts(headers(peer, "last")) == [("two", "rejected", 1), ("one", "rejected", 1)]


def test_a_repeated_death_changes_only_the_count_of_its_entry() -> None:
    old = {"queue": "q", "reason": "expired", "count": fields.Long(4), "time": fields.Timestamp(1), "exchange": "old"}
    new = {"queue": "q", "reason": "expired", "count": fields.Long(1), "time": fields.Timestamp(2), "exchange": "new"}
    other = {"queue": "p", "reason": "expired", "count": fields.Long(1)}
    assert with_death([other, old], new) == [{**old, "count": 5}, other]


@pytest.mark.parametrize(
    ("deaths", "is_dropped"),
    [
        ([], False),
        ([("q", "expired")], True),
        ([("p", "expired"), ("q", "expired")], True),
        ([("p", "expired"), ("q", "rejected")], False),
        ([("p", "rejected"), ("q", "expired")], False),
        ([("p", "maxlen"), ("q", "delivery_limit")], True),
    ],
)
def test_a_rejection_in_between_breaks_a_cycle(deaths: list[tuple[str, str]], is_dropped: bool) -> None:
    assert is_cycle("q", [{"queue": queue, "reason": reason} for queue, reason in deaths]) is is_dropped


# The cache of dead forms


def test_messages_that_share_a_dead_form_keep_their_bodies() -> None:
    peer = Lab().connect()
    declare(peer, "dead")
    declare(peer, "q", "dead")
    for body in (b"one", b"", b"a longer one" * 100):
        peer.publish("q", body, priority=3)
        reject(peer, "q")
    found = [pulled for _ in range(3) if (pulled := peer.get("dead")) is not None]
    assert [content.body for _, content in found] == [b"one", b"", b"a longer one" * 100]
    assert {content.properties.priority for _, content in found} == {3}


def test_messages_that_die_a_second_apart_have_different_death_times() -> None:
    lab = Lab()
    peer = lab.connect()
    declare(peer, "dead")
    declare(peer, "q", "dead")
    times = []
    for _ in range(2):
        peer.publish("q", b"x")
        reject(peer, "q")
        times.append(headers(peer, "dead")["x-death"][0]["time"].timestamp())
        lab.advance(1000)
    assert times[1] - times[0] == 1


def test_messages_from_different_exchanges_do_not_share_a_dead_form() -> None:
    peer = Lab().connect()
    declare(peer, "dead")
    declare(peer, "q", "dead")
    peer.send(commands.Queue.Bind(0, "q", "amq.topic", "#"))
    peer.expect(commands.Queue.BindOk)
    for key in ("a", "b"):
        peer.publish(key, b"x", exchange="amq.topic")
        reject(peer, "q")
        assert headers(peer, "dead")["x-death"][0]["routing-keys"] == [key]


def test_a_dead_letter_follows_the_current_topology() -> None:
    peer = Lab().connect()
    for name in ("one", "other"):
        declare(peer, name)
    declare(peer, "q", "key", "amq.direct")
    for _ in range(3):
        peer.publish("q", b"x")
    for name in ("one", "other"):
        peer.send(commands.Queue.Bind(0, name, "amq.direct", "key"))
        peer.expect(commands.Queue.BindOk)
        reject(peer, "q")
        assert peer.get(name) is not None
        peer.send(commands.Queue.Unbind(0, name, "amq.direct", "key"))
        peer.expect(commands.Queue.UnbindOk)
    reject(peer, "q")
    assert (peer.get("one"), peer.get("other")) == (None, None)


def test_a_headers_exchange_checks_each_dead_letter() -> None:
    peer = Lab().connect()
    for name in ("one", "other"):
        declare(peer, name)
        peer.send(commands.Queue.Bind(0, name, "amq.headers", "", arguments={"to": name}))
        peer.expect(commands.Queue.BindOk)
    declare(peer, "q", "key", "amq.headers")
    for name in ("one", "other", "one"):
        peer.publish("q", b"x", headers={"to": name})
        reject(peer, "q")
        assert peer.get(name) is not None


def test_the_cache_of_dead_forms_is_bounded() -> None:
    lab = Lab()
    peer = lab.connect()
    declare(peer, "dead")
    declare(peer, "q", "dead")
    for number in range(DEAD_FORMS_MAX + 10):
        peer.publish("q", b"x", message_id=str(number))
        reject(peer, "q")
    for number in range(DEAD_FORMS_MAX + 10):
        peer.publish("q", b"x", expiration=str(60_000 + number))
        reject(peer, "q")
    forms = lab.broker.vhosts["/"].dead_forms
    assert 0 < len(forms.by_expiration) <= DEAD_FORMS_MAX
    assert 0 < len(forms.by_list) <= DEAD_FORMS_MAX
    forms.clear()
    peer.publish("q", b"x", headers={"short": "x"})
    peer.publish("q", b"x", headers={"long": "x" * PROPERTY_LIST_BYTES_MAX})
    reject(peer, "q")
    reject(peer, "q")
    assert len(forms.by_list) == 1


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_rejected_message_comes_back_to_its_queue_when_the_consumer_has_taken_the_next_one(kind: str) -> None:
    lab = Lab()
    peer = lab.connect()
    declare(peer, "q", "q", queue_type=kind, max_length=1)
    peer.call(commands.Basic.Qos(prefetch_count=1))
    peer.consume("q")
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    tag = peer.expect_delivery()[0].delivery_tag
    peer.send(commands.Basic.Reject(tag, requeue=False))
    assert peer.bodies() == [b"2"]
    assert lab.vhost.queues["q"].ready_count == 1


@pytest.mark.parametrize("options", [{}, {"expiration": "60000"}])
def test_a_message_reaches_all_queues_before_the_dead_letters_that_it_causes(options: Any) -> None:
    lab = Lab()
    peer = lab.connect()
    declare(peer, "dead")
    declare(peer, "q", "dead", max_length=1)
    for queue in ("q", "dead"):
        peer.call(commands.Queue.Bind(queue=queue, exchange="amq.fanout"))
    for body in (b"1", b"2"):
        peer.publish(message=body, exchange="amq.fanout", **options)
    taken = [peer.get("dead") for _ in range(3)]
    assert [(got[1].body, got[1].properties.headers is not None) for got in taken if got is not None] == [
        (b"1", False),
        (b"2", False),
        (b"1", True),
    ]


def test_a_quorum_queue_before_4_3_counts_deliveries_to_lost_channels_in_its_dead_letters() -> None:
    lab = Lab()
    peer, holder = lab.connect(), lab.connect()
    peer.declare("dead", durable=True, arguments={"x-queue-type": "quorum"})
    declare(peer, "q", "dead", queue_type="quorum", max_length=1)
    peer.publish("q", b"1")
    assert holder.get("q", no_ack=False) is not None
    peer.publish("q", b"2")
    holder.disconnect()
    assert headers(peer, "dead")["x-delivery-count"] == 1


@pytest.mark.parametrize("cause", ["length", "expiry"])
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_queue_gives_up_all_that_it_must_before_other_queues_do(kind: str, cause: str) -> None:
    lab = Lab()
    peer = lab.connect()
    peer.declare("all")
    declare(peer, "other", "all", max_length=1)
    declare(peer, "q", "", "amq.fanout", queue_type=kind, max_length_bytes=9)
    for queue in ("other", "all"):
        peer.call(commands.Queue.Bind(queue=queue, exchange="amq.fanout"))
    peer.publish("other", b"displaced")
    for body in (b"111", b"222", b"333"):
        peer.publish("q", body, expiration="60000")
    if cause == "length":
        peer.publish("q", b"444444")
    else:
        lab.advance(60_000)
    taken = [got[1].body for got in iter(lambda: peer.get("all"), None)]
    # Beyond their length, quorum queues give up the newest first.
    died = {b"111", b"222"} if cause == "length" else {b"111", b"222", b"333"}
    assert set(taken[: len(died)]) == died
    assert taken[len(died)] == b"displaced"


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_few_dead_letters_wait_while_a_queue_gives_up_many(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_up, "DYING_MAX", 2)
    lab = Lab(compat="4.3" if kind == "quorum" else "4.2")
    peer = lab.connect()
    peer.declare("all", durable=True)
    declare(peer, "q", "all", queue_type=kind)
    for body in (b"1", b"2", b"3", b"4", b"5"):
        peer.publish("q", body, expiration="60000")
    waiting = []
    route = DeadLettering._route_all

    def note(dead_lettering: DeadLettering) -> None:
        waiting.append(len(dead_lettering._waiting))
        route(dead_lettering)

    monkeypatch.setattr(DeadLettering, "_route_all", note)
    lab.advance(60_000)
    assert [got[1].body for got in iter(lambda: peer.get("all"), None)] == [b"1", b"2", b"3", b"4", b"5"]
    assert max(waiting) == 2


@pytest.mark.parametrize("is_known", [True, False])
def test_a_long_history_is_the_same_whether_it_is_known_or_read_again(
    is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_known:
        monkeypatch.setattr(dead_letter, "PROPERTY_LIST_BYTES_MAX", 1 << 30)
    lab = Lab()
    peer = lab.connect()
    count = 40
    for number in range(count):
        declare(peer, f"q{number}", f"q{number + 1}", max_length=0)
    declare(peer, f"q{count}", "q0")
    peer.publish("q0", b"body", headers={"z": 1, "a": [1, 2]}, message_id="m", expiration="60000")
    for _ in range(2):
        lab.drain()
        reject(peer, f"q{count}")
        lab.drain()
    found = headers(peer, f"q{count}")
    deaths = found["x-death"]
    assert [death["queue"] for death in deaths] == [f"q{number}" for number in [*reversed(range(count)), count]]
    assert [death["count"] for death in deaths] == [3] * count + [2]
    assert deaths[-2]["original-expiration"] == "60000"
    assert list(found) == sorted(found)
    assert (found["z"], found["a"], found["x-first-death-queue"]) == (1, [1, 2], "q0")
