"""Transactions into queues that refuse publishes.

A classic queue that refuses a message fails the commit; a quorum queue does not. It takes all messages of a commit or
none.
"""

from __future__ import annotations

from typing import Any

from pamqp.commands import Exchange, Queue, Tx

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel


def _limited(lab: Lab, name: str, kind: str, **arguments: Any) -> str:
    """Return a queue that refuses publishes beyond a limit, of one message unless arguments say otherwise."""
    given = {name.replace("_", "-"): value for name, value in (arguments or {"x_max_length": 1}).items()}
    given |= {"x-queue-type": kind}
    return lab.queue(name, durable=True, arguments={"x-overflow": "reject-publish", **given})


def _transaction(lab: Lab) -> Channel:
    channel = lab.channel()
    channel.call(Tx.Select)
    return channel


def _look(lab: Lab, *queues: str) -> None:
    """Show the lengths of queues."""
    with lab.transcript.muted():
        channel = lab.channel()
    channel.sync(*queues)
    for queue in queues:
        channel.call(Queue.Declare, queue=queue, passive=True)


def _commit(lab: Lab, channel: Channel, queue: str, count: int) -> None:
    for number in range(count):
        channel.publish(b"%d" % number, routing_key=queue)
    channel.call(Tx.Commit)
    _look(lab, queue)


@scenario
def a_quorum_queue_takes_all_messages_of_a_commit_or_none(lab: Lab) -> None:
    q, channel = _limited(lab, "q", "quorum", x_max_length=5), _transaction(lab)
    for count in (3, 6, 6, 1):
        _commit(lab, channel, q, count)
    _commit(lab, _transaction(lab), q, 1)


@scenario
def a_quorum_queue_full_of_octets_takes_all_messages_of_a_commit_or_none(lab: Lab) -> None:
    q, channel = _limited(lab, "q", "quorum", x_max_length_bytes=300), _transaction(lab)
    for _ in range(3):
        for _ in range(4):
            channel.publish(b"x" * 100, routing_key=q)
        channel.call(Tx.Commit)
        _look(lab, q)


@scenario
def a_quorum_queue_without_room_takes_the_first_commit(lab: Lab) -> None:
    q, channel = _limited(lab, "q", "quorum", x_max_length=0), _transaction(lab)
    _commit(lab, channel, q, 3)
    _commit(lab, channel, q, 1)


@scenario
def a_classic_queue_full_of_octets_fails_the_commit(lab: Lab) -> None:
    q, channel = _limited(lab, "q", "classic", x_max_length_bytes=5), _transaction(lab)
    _commit(lab, channel, q, 3)
    _commit(lab, channel, q, 3)


def _fan_out(lab: Lab, *kinds: str) -> None:
    """Commit to an exchange with full queues (`full …`) and others."""
    x, channel = lab.name("x"), _transaction(lab)
    channel.exchange(x, "fanout")
    queues = []
    for number, kind in enumerate(kinds):
        name, is_full, kind = f"{number}", kind.startswith("full "), kind.removeprefix("full ")
        if is_full:
            queues.append(_limited(lab, name, kind))
            lab.put(queues[-1], *([b"1", b"2"] if kind == "quorum" else [b"1"]))
        else:
            queues.append(lab.queue(name, durable=True, arguments={"x-queue-type": kind}))
        channel.bind(queues[-1], x)
    for body in (b"3", b"4"):
        channel.publish(body, exchange=x)
    channel.call(Tx.Commit)
    _look(lab, *queues)


@scenario
def one_full_classic_queue_of_several_fails_the_commit(lab: Lab) -> None:
    _fan_out(lab, "classic", "full classic", "classic")


@scenario
def a_full_classic_queue_beside_a_quorum_queue_fails_the_commit(lab: Lab) -> None:
    _fan_out(lab, "full classic", "quorum")


@scenario
def a_full_quorum_queue_beside_others_does_not_fail_the_commit(lab: Lab) -> None:
    _fan_out(lab, "classic", "full quorum", "quorum")


@scenario
def what_a_quorum_queue_refuses_does_not_fail_the_commit_at_a_classic_queue(lab: Lab) -> None:
    _fan_out(lab, "full classic", "full quorum")


@scenario
def a_message_for_a_full_classic_queue_alone_fails_a_commit_that_a_quorum_queue_refuses(lab: Lab) -> None:
    quorum, classic = _limited(lab, "quorum", "quorum"), _limited(lab, "classic", "classic")
    lab.put(quorum, b"1", b"2")
    lab.put(classic, b"1")
    channel = _transaction(lab)
    channel.publish(b"3", routing_key=quorum)
    channel.publish(b"4", routing_key=classic)
    channel.call(Tx.Commit)
    _look(lab, quorum, classic)


@scenario
def a_return_comes_before_a_commit_that_fails_and_one_that_is_refused_in_silence(lab: Lab) -> None:
    for kind in ("classic", "quorum"):
        q, channel = _limited(lab, kind, kind, x_max_length=0), _transaction(lab)
        if kind == "quorum":
            lab.put(q, b"1")
        channel.publish(b"2", routing_key=lab.name("missing"), mandatory=True)
        channel.publish(b"3", routing_key=q, mandatory=True)
        channel.call(Tx.Commit)
        _look(lab, q)


@scenario
def acks_of_a_commit_take_effect_although_a_queue_refuses_its_messages(lab: Lab) -> None:
    for kind in ("classic", "quorum"):
        source, full = lab.queue(f"source of {kind}"), _limited(lab, kind, kind)
        lab.put(source, b"1", b"2", b"3")
        lab.put(full, *([b"1", b"2"] if kind == "quorum" else [b"1"]))
        channel = _transaction(lab)
        for _ in range(3):
            channel.get(source)
        channel.ack(1)
        channel.nack(2)
        channel.publish(b"3", routing_key=full)
        channel.call(Tx.Commit)
        _look(lab, source, full)


@scenario
def an_ack_makes_no_room_for_a_publish_of_its_commit(lab: Lab) -> None:
    for kind in ("classic", "quorum"):
        q, channel = _limited(lab, kind, kind, x_max_length=2), _transaction(lab)
        lab.put(q, b"1", b"2")
        with lab.transcript.muted():  # its headers depend on the version
            channel.get(q)
        channel.ack(1)
        channel.publish(b"3", routing_key=q)
        channel.call(Tx.Commit)
        _look(lab, q)


@scenario
def a_stream_never_refuses_a_commit(lab: Lab) -> None:
    q = lab.queue(durable=True, arguments={"x-queue-type": "stream", "x-max-length-bytes": 10})
    channel = _transaction(lab)
    for _ in range(2):
        channel.publish(b"x" * 100, routing_key=q)
        channel.call(Tx.Commit)


def _delete_before_commit(lab: Lab, *kinds: str, is_used: bool = False) -> None:
    """Commit publishes to queues, the first of which is deleted before; with `is_used`, an earlier commit used it."""
    both, other = lab.name("both"), lab.channel()
    other.call(Exchange.Declare, exchange=both, exchange_type="fanout")
    queues = [
        lab.queue(f"{number} {kind}", durable=True, arguments={"x-queue-type": kind})
        for number, kind in enumerate(kinds)
    ]
    for queue in queues:
        other.call(Queue.Bind, queue=queue, exchange=both)
    channel = _transaction(lab)
    if is_used:
        channel.publish(b"0", routing_key=queues[0])
        channel.call(Tx.Commit)
    channel.publish(b"1", routing_key=queues[0], mandatory=True)
    channel.publish(b"2", exchange=both, mandatory=True)
    channel.publish(b"3", routing_key=queues[0])
    channel.sync()
    other.call(Queue.Delete, queue=queues[0])
    channel.call(Tx.Commit)
    _look(lab, *queues[1:])


@scenario
def a_classic_queue_is_deleted_before_the_commit(lab: Lab) -> None:
    _delete_before_commit(lab, "classic", "classic")


@scenario
def a_quorum_queue_is_deleted_before_the_commit(lab: Lab) -> None:
    _delete_before_commit(lab, "quorum", "classic")


@scenario
def a_classic_queue_that_the_channel_has_used_is_deleted_before_the_commit(lab: Lab) -> None:
    _delete_before_commit(lab, "classic", "classic", is_used=True)


@scenario
def a_quorum_queue_that_the_channel_has_used_is_deleted_before_the_commit(lab: Lab) -> None:
    _delete_before_commit(lab, "quorum", "classic", is_used=True)


@scenario
def the_only_queue_of_a_commit_is_deleted_before(lab: Lab) -> None:
    _delete_before_commit(lab, "classic")


@scenario
def a_queue_is_declared_again_before_the_commit(lab: Lab) -> None:
    q, channel, other = lab.queue(), _transaction(lab), lab.channel()
    channel.publish(b"1", routing_key=q, mandatory=True)
    channel.publish(b"2", routing_key=q)
    channel.sync()
    other.call(Queue.Delete, queue=q)
    lab.queue()
    channel.call(Tx.Commit)
    _look(lab, q)


@scenario
def a_queue_that_comes_before_the_commit_gets_no_earlier_publish(lab: Lab) -> None:
    q, channel = lab.name("q"), _transaction(lab)
    channel.publish(b"1", routing_key=q)
    channel.publish(b"2", routing_key=q, mandatory=True)
    channel.sync()
    lab.queue()
    channel.call(Tx.Commit)
    _look(lab, q)
