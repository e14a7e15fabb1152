"""At-least-once dead-lettering, seen in RabbitMQ 4.0.5 and 4.3.6. The retries are from rabbit_fifo_dlx_worker.erl."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.queues.kept_dead_letters import RETRY_MS, TRIED_MAX
from amqp_broker.broker.queues.queue_settings import QueueSettings
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.scheduling.portions import DEAD_LETTER_WORK, WORK_MAX
from tests.peer import Lab, Peer, deaths_in, publish_bytes
from tests.present import present
from tests.restarting import durable_lab, restarted

REFUSING = {"x-max-length": 1, "x-overflow": "reject-publish"}


def declare(peer: Peer, exchange: str = "", key: str | None = "dead", **arguments: Any) -> None:
    given = {
        "dead_letter_strategy": "at-least-once",
        "overflow": "reject-publish",
        "dead_letter_exchange": exchange,
        **({} if key is None else {"dead_letter_routing_key": key}),
        **arguments,
    }
    named = {f"x-{name.replace('_', '-')}": value for name, value in given.items()}
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", **named})


def refuse(peer: Peer, *bodies: bytes) -> None:
    """Publish messages, and reject each without requeue."""
    for body in bodies:
        peer.publish("q", body)
        pulled = peer.get("q", no_ack=False)
        assert pulled is not None
        peer.send(commands.Basic.Reject(present(pulled[0].delivery_tag), requeue=False))


def bodies(peer: Peer, queue: str = "dead") -> list[bytes]:
    found = []
    while (pulled := peer.get(queue)) is not None:
        found.append(pulled[1].body)
    return found


def source(lab: Lab) -> QuorumQueue:
    queue = lab.vhost.queues["q"]
    assert isinstance(queue, QuorumQueue)
    return queue


def counts(lab: Lab) -> tuple[int, int, int]:
    queue = source(lab)
    return queue.message_count, queue.ready_count, len(queue.dead_letters)


def test_a_target_that_takes_a_dead_letter_gets_it_at_once(lab: Lab, peer: Peer) -> None:
    peer.declare("dead")
    declare(peer)
    refuse(peer, b"1")
    assert counts(lab) == (0, 0, 0)
    assert bodies(peer) == [b"1"]


def test_a_dead_letter_without_a_target_is_kept_until_there_is_one(lab: Lab, peer: Peer) -> None:
    declare(peer)
    refuse(peer, b"1")
    assert counts(lab) == (1, 0, 1)
    assert peer.get("q") is None
    peer.declare("dead")
    lab.advance(RETRY_MS - 1)
    assert bodies(peer) == []
    lab.advance(1)
    assert bodies(peer) == [b"1"]
    assert counts(lab) == (0, 0, 0)


def test_a_dead_letter_is_kept_while_the_exchange_does_not_exist(lab: Lab, peer: Peer) -> None:
    declare(peer, exchange="missing")
    refuse(peer, b"1")
    assert counts(lab) == (1, 0, 1)


def test_a_target_that_refuses_is_asked_again(lab: Lab, peer: Peer) -> None:
    peer.declare("dead", arguments=REFUSING)
    peer.publish("dead", b"x")
    declare(peer)
    refuse(peer, b"1")
    lab.advance(RETRY_MS)
    assert counts(lab) == (1, 0, 1)
    assert bodies(peer) == [b"x"]
    lab.advance(RETRY_MS)
    assert bodies(peer) == [b"1"]
    assert counts(lab) == (0, 0, 0)


def test_a_target_that_has_taken_a_dead_letter_does_not_get_it_again(lab: Lab, peer: Peer) -> None:
    peer.declare("full", arguments=REFUSING)
    peer.declare("dead")
    peer.publish("full", b"x")
    for queue in ("full", "dead"):
        peer.call(commands.Queue.Bind(queue=queue, exchange="amq.fanout"))
    declare(peer, exchange="amq.fanout", key=None)
    refuse(peer, b"1")
    assert bodies(peer) == [b"1"]
    lab.advance(RETRY_MS)
    assert counts(lab) == (1, 0, 1)
    assert bodies(peer, "full") == [b"x"]
    lab.advance(RETRY_MS)
    assert (bodies(peer, "full"), bodies(peer)) == ([b"1"], [])
    assert counts(lab) == (0, 0, 0)


def test_a_dead_letter_keeps_the_time_of_its_death(lab: Lab, peer: Peer) -> None:
    declare(peer)
    died_at_s = lab.now // 1000
    refuse(peer, b"1")
    peer.declare("dead")
    lab.advance(RETRY_MS)
    [death] = deaths_in(present(peer.get("dead"))[1].properties)
    assert (death["time"].timestamp(), death["count"]) == (died_at_s, 1)


def test_expired_messages_are_kept_and_do_not_expire_again(lab: Lab, peer: Peer) -> None:
    declare(peer, message_ttl=100)
    peer.publish("q", b"1")
    lab.advance(1000)
    assert counts(lab) == (1, 0, 1)
    peer.declare("dead")
    lab.advance(RETRY_MS)
    assert bodies(peer) == [b"1"]


def test_messages_beyond_the_delivery_limit_are_kept(lab: Lab, peer: Peer) -> None:
    declare(peer, delivery_limit=0)
    peer.publish("q", b"1")
    peer.get("q", no_ack=False)
    peer.send(commands.Basic.Nack(1, requeue=True))
    assert counts(lab) == (1, 0, 1)


def test_kept_dead_letters_count_for_the_maximum_length(lab: Lab, peer: Peer) -> None:
    declare(peer, max_length=1)
    refuse(peer, b"1", b"2")
    peer.publish("q", b"3")
    assert counts(lab) == (2, 0, 2)


def test_only_some_dead_letters_wait_for_their_targets_at_once(lab: Lab, peer: Peer) -> None:
    declare(peer)
    refuse(peer, *(b"%d" % number for number in range(TRIED_MAX)))
    peer.declare("dead")
    refuse(peer, b"behind", b"last")
    assert bodies(peer) == []
    lab.advance(RETRY_MS)
    assert sorted(bodies(peer)) == sorted([*(b"%d" % number for number in range(TRIED_MAX)), b"behind", b"last"])
    assert counts(lab) == (0, 0, 0)


@pytest.mark.parametrize(("compat", "left"), [("3.13", 1), ("4.2", 1), ("4.3", 0)])
def test_only_4_3_purges_kept_dead_letters(compat: str, left: int) -> None:
    lab = Lab(compat=compat)
    peer = lab.connect()
    declare(peer)
    refuse(peer, b"1")
    peer.publish("q", b"2")
    peer.send(commands.Queue.Purge(queue="q"))
    assert peer.expect(commands.Queue.PurgeOk).message_count == 2 - left
    assert counts(lab) == (left, 0, left)


def test_a_deleted_queue_forgets_its_dead_letters(lab: Lab, peer: Peer) -> None:
    declare(peer)
    refuse(peer, b"1")
    peer.send(commands.Queue.Delete(queue="q"))
    assert peer.expect(commands.Queue.DeleteOk).message_count == 0
    peer.declare("dead")
    lab.advance(RETRY_MS)
    assert bodies(peer) == []


def test_another_strategy_drops_kept_dead_letters(lab: Lab, peer: Peer) -> None:
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-overflow": "reject-publish"})
    keys = {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}
    lab.vhost.policies.set(Policy("p", "^q", {**keys, "dead-letter-strategy": "at-least-once"}))
    refuse(peer, b"1")
    assert counts(lab) == (1, 0, 1)
    lab.vhost.policies.set(Policy("p", "^q", keys))
    assert counts(lab) == (0, 0, 0)


def test_a_queue_that_drops_its_head_keeps_no_dead_letters(lab: Lab, peer: Peer) -> None:
    declare(peer, overflow="drop-head")
    refuse(peer, b"1")
    assert counts(lab) == (0, 0, 0)


def test_a_restart_tries_kept_dead_letters_again() -> None:
    lab = durable_lab("4.3")
    peer = lab.connect()
    declare(peer)
    refuse(peer, b"1", b"2")
    peer.publish("q", b"ready")
    died_at_s = lab.now // 1000
    lab.now += 5000
    again = restarted(lab)
    assert counts(again) == (3, 1, 2)
    peer = again.connect()
    peer.declare("dead", durable=True)
    assert bodies(peer) == []
    again.advance(RETRY_MS)
    pulled = present(peer.get("dead"))
    (death,) = deaths_in(pulled[1].properties)
    assert (death["reason"], death["time"].timestamp()) == ("rejected", died_at_s)
    assert bodies(peer) == [b"2"]
    assert counts(again) == (1, 1, 0)
    assert counts(restarted(again)) == (1, 1, 0)


def test_a_restart_sends_kept_dead_letters_to_targets_that_are_there_now() -> None:
    lab = durable_lab("4.3")
    peer = lab.connect()
    declare(peer)
    refuse(peer, b"1")
    peer.declare("dead", durable=True)
    assert bodies(restarted(lab).connect()) == [b"1"]


def test_many_dead_letters_that_waited_for_their_target_reach_it_in_several_turns(lab: Lab, peer: Peer) -> None:
    peer.declare("dead", durable=True, arguments={"x-queue-type": "quorum", **REFUSING})
    peer.publish("dead", b"0")
    declare(peer, message_ttl=1000)
    count = 4000
    peer.send_bytes(b"".join(publish_bytes("q", b"%d" % number) for number in range(count)))
    lab.drain()
    lab.advance(1000)
    lab.drain()
    dead = lab.vhost.queues["dead"]
    assert len(source(lab).dead_letters) > count - TRIED_MAX
    lab.vhost.policies.set(Policy("p", "^dead$", {"max-length": 2 * count}))
    dead.arguments = {"x-queue-type": "quorum"}
    dead.apply(QueueSettings())
    lab.now += RETRY_MS
    turns = []
    while source(lab).dead_letters:
        before = dead.ready_count
        lab.broker.tick(lab.now)
        lab.broker.end_turn()
        turns.append(dead.ready_count - before)
    assert len(turns) > 2
    assert max(turns) <= WORK_MAX // DEAD_LETTER_WORK + TRIED_MAX
    assert dead.ready_count in (count, count + 1)
