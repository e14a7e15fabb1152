from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.management.documents import reported_lives
from tests.broker_parts import bind, new_exchange, new_queue
from tests.peer import Lab, Peer
from tests.run_report.reporting import logging_lab, report_of


@pytest.fixture
def lab() -> Lab:
    return logging_lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    """A client with a queue `q` whose dead letters go to `dead`."""
    peer = lab.connect()
    dead: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.call(commands.Queue.Declare(queue="q", arguments=dead))
    peer.call(commands.Queue.Declare(queue="dead"))
    return peer


def lives(lab: Lab) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = report_of(lab)["lives"]
    return rows


def ends(lab: Lab) -> list[tuple[str, str]]:
    """Return the ends of the newest message."""
    return [(end["state"], end["words"]) for end in lives(lab)[-1]["ends"]]


def events(life: dict[str, Any]) -> list[tuple[str, int]]:
    return [(event["event"], event["message_number"]) for event in life["events"]]


def get(peer: Peer, *queues: str) -> None:
    for queue in queues:
        peer.send(commands.Basic.Get(queue=queue))


def test_a_life_has_the_events_of_its_dead_letters(lab: Lab, peer: Peer) -> None:
    peer.publish("q", b"body", message_id="m-1")
    peer.publish("q", b"other")
    get(peer, "q")
    peer.send(commands.Basic.Reject(1, requeue=False))
    first, second = lives(lab)
    assert events(first) == [("publish", 1), ("deliver", 1), ("nack", 1), ("dead_letter", 3)]
    assert (first["payload"], first["properties"], first["routing_keys"]) == ("body", {"message_id": "m-1"}, ["q"])
    assert [place["queue"] for place in first["places"]] == ["dead", "q"]
    assert (second["number"], second["places"][0]["sentences"]) == (2, ["It is here, ready."])


# Ends


def test_a_message_in_a_queue_is_ready_unacked_or_acknowledged(lab: Lab, peer: Peer) -> None:
    peer.publish("q", b"")
    assert ends(lab) == [("ready", "ready in q")]
    get(peer, "q")
    [end] = lives(lab)[0]["ends"]
    assert (end["state"], end["holders"]) == ("unacked", [[peer.session.name, 1, ""]])
    peer.send(commands.Basic.Ack(1))
    assert ends(lab) == [("acked", "acknowledged in q")]


def test_each_queue_of_a_message_has_its_end(lab: Lab, peer: Peer) -> None:
    for name in "abcd":
        peer.call(commands.Queue.Declare(queue=name))
        peer.call(commands.Queue.Bind(queue=name, exchange="amq.fanout"))
    peer.publish("", b"", exchange="amq.fanout")
    get(peer, "a", "b")
    peer.send(commands.Basic.Reject(2, requeue=False), commands.Queue.Purge(queue="c"), commands.Basic.Ack(1))
    expected = [
        ("acked", "acknowledged in a"),
        ("lost", "rejected in b"),
        ("lost", "dropped by c"),
        ("ready", "ready in d"),
    ]
    assert ends(lab) == expected


def test_a_message_has_marks_for_some_of_many_queues(lab: Lab, peer: Peer) -> None:
    count = reported_lives.ENDS_MAX + 3
    for number in range(count):
        bind(lab.vhost.exchanges["amq.fanout"], new_queue(lab.vhost, f"q{number}"), lab.vhost)
    peer.publish("", b"", exchange="amq.fanout")
    [life] = lives(lab)
    assert (len(life["ends"]), life["more_ends"]) == (reported_lives.ENDS_MAX, 3)
    assert (len(life["places"]), life["more_places"]) == (
        reported_lives.PLACES_MAX,
        count - reported_lives.PLACES_MAX,
    )


def test_a_dead_letter_to_no_queue_is_lost_with_a_hint(lab: Lab, peer: Peer) -> None:
    peer.send(commands.Queue.Delete(queue="dead"))
    peer.publish("q", b"")
    get(peer, "q")
    peer.send(commands.Basic.Reject(1, requeue=False))
    assert ends(lab) == [("lost", "dead letter to no queue from q")]
    assert lives(lab)[0]["hint"] == "no queue was bound with the key 'dead'"


def test_a_transaction_that_is_open_or_rolled_back_has_no_hint(lab: Lab) -> None:
    peer = lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.call(commands.Tx.Select())
    peer.publish("q", b"")
    assert (ends(lab), lives(lab)[0]["hint"]) == ([("unacked", "in an open transaction")], "")
    peer.call(commands.Tx.Rollback())
    assert (ends(lab), lives(lab)[0]["hint"]) == ([("lost", "not committed")], "")


def test_a_delayed_message_waits_in_its_exchange(lab: Lab, peer: Peer) -> None:
    later = new_exchange(lab.vhost, "later", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    bind(later, lab.vhost.queues["q"], lab.vhost)
    peer.publish("", b"", exchange="later", headers={"x-delay": 60_000})
    assert ends(lab) == [("delayed", "delayed in exchange later")]
    lab.advance(60_000)
    assert ends(lab) == [("ready", "ready in q")]


def test_a_direct_reply_is_not_lost(lab: Lab, peer: Peer) -> None:
    peer.publish("amq.rabbitmq.reply-to.g1h2AA5yZXBseUA.abc==", b"")
    assert (ends(lab), lives(lab)[0]["hint"]) == ([("gone", "sent as a direct reply")], "")


def test_a_message_whose_publish_the_log_has_dropped_has_no_known_end(lab: Lab, peer: Peer) -> None:
    log = lab.broker.event_logs.start(lab.vhost, events_max=2)
    peer.publish("q", b"")
    get(peer, "q")
    peer.send(commands.Basic.Nack(1, requeue=True))
    assert log.skipped == 1
    [life] = lives(lab)
    assert [end["words"] for end in life["ends"]] == ["its publish is no longer in the log"]
    assert (life["hint"], life["places"]) == ("", [])


# Hints and reasons


def test_a_message_without_a_queue_has_a_hint(lab: Lab, peer: Peer) -> None:
    peer.publish("deed", b"")
    assert (ends(lab), lives(lab)[0]["hint"]) == (
        [("lost", "in no queue")],
        "no queue was bound with the key 'deed': did you mean 'dead'?",
    )
    peer.publish("x", b"", exchange="amq.headers")
    assert lives(lab)[1]["hint"] == "no binding of 'amq.headers' matched: the exchange has no bindings"


def test_a_key_that_was_bound_later_is_said_to_be(lab: Lab, peer: Peer) -> None:
    peer.publish("k", b"", exchange="amq.direct")
    peer.publish("later", b"")
    peer.call(commands.Queue.Bind(queue="q", exchange="amq.direct", routing_key="k"))
    peer.call(commands.Queue.Declare(queue="later"))
    assert [life["hint"] for life in lives(lab)] == [
        "no queue was bound with the key 'k' then, but one is now",
        "no queue was bound with the key 'later' then, but one is now",
    ]


def test_a_fault_explains_why_no_queue_got_a_message(lab: Lab, peer: Peer) -> None:
    peer.call(commands.Confirm.Select())
    lab.broker.faults.add(Rule("confirm_nack", times=1))
    peer.publish("q", b"")
    assert (ends(lab), lives(lab)[0]["hint"]) == ([("lost", "in no queue: fault confirm_nack")], "")
    lab.broker.faults.add(Rule("confirm_delay", delay_ms=1))
    peer.publish("none", b"")
    assert ends(lab) == [("lost", "in no queue")]


def test_a_publish_that_a_fault_cut_off_is_a_life(lab: Lab, peer: Peer) -> None:
    lab.broker.faults.add(Rule("close_connection", on="publish", times=1))
    peer.publish("q", b"x")
    [life] = lives(lab)
    assert ends(lab) == [("lost", "not taken: fault close_connection")]
    assert (life["payload"], events(life)) == ("x", [("fault", 1)])


def test_few_hints_are_looked_for(lab: Lab, peer: Peer) -> None:
    for number in range(reported_lives.HINTS_MAX + 1):
        for _ in range(2):
            peer.publish(f"none{number}", b"")
    hints = [life["hint"] for life in lives(lab)]
    assert len([one for one in hints if one]) == 2 * reported_lives.HINTS_MAX


def test_a_refused_message_came_by_a_binding(lab: Lab, peer: Peer) -> None:
    peer.call(commands.Queue.Declare(queue="small", arguments={"x-max-length": 1, "x-overflow": "reject-publish"}))
    peer.call(commands.Queue.Bind(queue="small", exchange="amq.topic", routing_key="k"))
    for _ in range(2):
        peer.publish("k", b"", exchange="amq.topic")
    assert ends(lab) == [("lost", "refused by small")]
    assert "not bound" not in " ".join(lives(lab)[1]["places"][0]["sentences"])


def test_a_queue_that_other_exchanges_lead_to_is_marked(lab: Lab, peer: Peer) -> None:
    bind(lab.vhost.exchanges["amq.topic"], lab.vhost.exchanges["amq.fanout"], lab.vhost, "k")
    bind(lab.vhost.exchanges["amq.fanout"], lab.vhost.queues["q"], lab.vhost)
    peer.publish("k", b"", exchange="amq.topic")
    assert lives(lab)[0]["events"][0]["indirect"] == ["q"]


# Limits


def test_lives_with_difficulties_come_before_waiting_and_acknowledged_ones(
    lab: Lab, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reported_lives, "LIVES_MAX", 3)
    peer.publish("none", b"1")
    for number in range(2, 5):
        peer.publish("q", str(number).encode())
        get(peer, "q")
        peer.send(commands.Basic.Ack(number - 1))
    peer.publish("dead", b"5")
    report = report_of(lab)
    assert ([life["payload"] for life in report["lives"]], report["lives_skipped"]) == (["1", "4", "5"], 2)
    for number in range(6, 9):
        peer.publish("dead", str(number).encode())
    assert [life["payload"] for life in lives(lab)] == ["1", "7", "8"]


def test_a_long_life_has_its_first_events(lab: Lab, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reported_lives, "EVENTS_MAX", 5)
    peer.publish("q", b"")
    for number in range(1, 5):
        get(peer, "q")
        peer.send(commands.Basic.Reject(number, requeue=True))
    [life] = lives(lab)
    assert (len(life["events"]), life["events_skipped"], ends(lab)) == (5, 4, [("ready", "ready in q")])


def test_a_message_that_is_older_than_the_log_has_no_life() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.publish("q", b"older")
    lab.broker.event_logs.start(lab.vhost)
    peer.publish("q", b"newer")
    get(peer, "q", "q")
    assert [life["payload"] for life in lives(lab)] == ["newer"]
