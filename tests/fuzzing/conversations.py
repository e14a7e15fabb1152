"""Throws mutated streams of bytes at sessions, without a guide: `python -m tests.fuzzing [--seconds N] [--seed N]`.

Each case is a client's life, mutated. It is fed to three brokers: whole, cut at random, and octet by octet. All three
must survive it, say only what is AMQP, serve another client as before, keep little, and come to the same end.
Exit code 1 and a reproducer for the first case that fails.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from pamqp import exceptions, frame
from pamqp.commands import Basic, Channel

from amqp_broker.amqp.connection_states import ENDED
from amqp_broker.amqp.property_shapes import SHAPES_BYTES_MAX
from amqp_broker.broker.routing import route_cache
from tests.fuzzing.target import Failure
from tests.mutations import mutate, streams
from tests.peer import Lab, Peer

QOS = b"\x00\x3c\x00\x0a"
ACCESS_REQUEST_OK = 30 << 16 | 11
CONTENT_METHODS = {Basic.Deliver.index, Basic.GetOk.index, Basic.Return.index}
CONFIRMS = {Basic.Ack.index, Basic.Nack.index}
OUTBOX_BYTES_MAX = 8 * 1024 * 1024
SHRINK_ATTEMPTS_MAX = 500


# Result of a case


@dataclass
class Outcome:
    """The client's replies, without times and the grouping of confirms, and the broker's state."""

    frames: list[tuple[int, int, bytes]] = field(default_factory=list)
    confirms: dict[tuple[int, int, int], bool] = field(default_factory=dict)
    is_over: bool = False
    queues: dict[str, list[bytes]] = field(default_factory=dict)
    bindings: int = 0


def live(pieces: list[bytes], *, takes_rest: bool) -> Outcome:
    """Feed reads to a new broker and look at everything. Raises Failure.

    A shell may take what a read has left over, and put the next one behind it.
    """
    lab = Lab()
    control = lab.connect()
    control.declare("control", exclusive=True)
    peer = lab.peer()
    for piece in pieces:
        peer.send_bytes((peer.session.reader.take_partial_frame() if takes_rest else b"") + piece)
    lab.drain()
    check_memory(peer)
    output = b"".join(peer.session.outbox.take())
    outcome = Outcome(is_over=peer.session.state is ENDED)
    check_output(output, peer.session.frame_max, outcome)
    check_end(lab, peer, control)
    for name, queue in lab.vhost.queues.items():
        outcome.queues[name] = [message.body for message in queue.messages()]
        if queue.unacked_count:
            raise Failure(f"{queue} counts {queue.unacked_count} unacked messages without an owner")
    outcome.bindings = sum(len(exchange.bindings) for exchange in lab.vhost.exchanges.values())
    return outcome


def check_memory(peer: Peer) -> None:
    session = peer.session
    limits = {
        # A publish waits for its content, if that is one frame.
        "octets of unfinished frames": (sum(map(len, session.reader._pending)), 2 * session.frame_max + 1024),
        "routes": (len(session.routes), route_cache.ROUTES_MAX),
        "octets of property lists": (session.shapes.size_bytes, SHAPES_BYTES_MAX),
        "channels": (len(session.channels), session.channel_max),
        "octets in the outbox": (sum(map(len, session.outbox.pieces)), OUTBOX_BYTES_MAX),
        "confirms and consumers put off": (len(session.gate.confirming) + len(session.freed_consumers), 0),
    }
    for what, (count, limit) in limits.items():
        if count > limit:
            raise Failure(f"keeps {count} {what}, and may keep {limit}")
    for channel in session.channels.values():
        assembly = channel.assembly
        if (
            assembly is not None
            and assembly.body_bytes > session.broker.settings.message_bytes_max
            and assembly._pieces
        ):
            raise Failure("keeps the body of a message that is too large")


def check_output(output: bytes, frame_max: int, outcome: Outcome) -> None:
    """Raise Failure for what is no AMQP, or what no client expects; fills the outcome."""
    if output[:4] == b"AMQP":
        output = output[8:]
    lives: Counter[int] = Counter()
    closed: set[int] = set()
    # The channel of an unfinished content, and how much of its body is missing; -1 where its header is.
    content: tuple[int, int] | None = None
    while output:
        kind, number, size = output[0], int.from_bytes(output[1:3], "big"), int.from_bytes(output[3:7], "big")
        if len(output) < size + 8 or output[size + 7] != 0xCE or kind not in (1, 2, 3, 8):
            raise Failure(f"says what is no frame: {output[:50]!r}")
        payload, whole, output = output[7 : size + 7], output[: size + 8], output[size + 8 :]
        if kind in (2, 3):
            if content is None or number != content[0] or (kind == 2) != (content[1] < 0) or size + 8 > frame_max:
                raise Failure(f"sends an unexpected content frame: {whole[:50]!r}")
            left = int.from_bytes(payload[4:12], "big") if kind == 2 else content[1] - size
            if left < 0:
                raise Failure("sends more body than it has announced")
            content = (number, left) if left else None
        elif content is not None:
            raise Failure(f"interrupts the content on channel {content[0]}")
        if kind == 1:
            index = check_method(whole)
            if index in CONTENT_METHODS:
                content = (number, -1)
            elif index == Channel.OpenOk.index:
                closed.discard(number)
                lives[number] += 1
            elif number in closed and index != Channel.CloseOk.index:
                raise Failure(f"says {payload!r} on a channel that it has closed")
            elif index == Channel.Close.index:
                closed.add(number)
            elif index in CONFIRMS:
                tag, multiple = int.from_bytes(payload[4:12], "big"), payload[12] & 1
                add_confirms(outcome, (number, lives[number]), tag, bool(multiple), index == Basic.Ack.index)
                continue
        if kind != 8:
            outcome.frames.append((kind, number, payload))
    if content is not None:
        raise Failure("does not finish a content")


def check_method(whole: bytes) -> int:
    """The id of a method; raises Failure if pamqp cannot read it."""
    index = int.from_bytes(whole[7:11], "big")
    try:
        if index != ACCESS_REQUEST_OK:
            frame.unmarshal(whole)
    except exceptions.UnmarshalingException as error:
        # Routing keys may be any octets, which pamqp does not know.
        if not isinstance(error.__cause__, UnicodeDecodeError):
            raise Failure(f"says what is no method: {whole[:50]!r}") from error
    return index


def add_confirms(outcome: Outcome, life: tuple[int, int], tag: int, multiple: bool, is_ack: bool) -> None:
    before = [key[2] for key in outcome.confirms if key[:2] == life]
    numbers = [number for number in range(1, tag + 1) if number not in before] if multiple else [tag]
    if not numbers or set(numbers) & set(before):
        raise Failure(f"confirms {tag} twice")
    outcome.confirms.update(((*life, number), is_ack) for number in numbers)


def check_end(lab: Lab, peer: Peer, control: Peer) -> None:
    """The other client is served, and nothing is left of this one when it is gone."""
    control.publish("control", b"still here", mandatory=True)
    got = control.get("control")
    if got is None or got[1].body != b"still here":
        raise Failure("another client is not served any more")
    if peer.session.state.ignores_input:
        lab.advance(31_000)
        if peer.session.state is not ENDED:
            raise Failure("hears nothing and does not end")
    peer.disconnect()
    if lab.broker.connections != {control.session} or peer.session.channels or peer.session.reader._pending:
        raise Failure("something is left of the connection")
    if any(queue.owner is peer.session or queue.consumers for queue in lab.vhost.queues.values()):
        raise Failure("something is left of the connection's queues and consumers")


class Errors(logging.Handler):
    """Keeps what the session reports as its own fault."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


def try_case(pieces: list[bytes], chance: Random, *, by_octet: bool = True) -> None:
    """Raise Failure if one of the ways of reading fails, or if they do not come to the same end."""
    data = b"".join(pieces)
    errors = Errors()
    logger = logging.getLogger("amqp_broker.session")
    logger.addHandler(errors)
    propagates, logger.propagate = logger.propagate, False
    try:
        ways = [[data], cut_anywhere(data, chance)]
        if by_octet:
            ways.append([bytes([octet]) for octet in data])
        outcomes = [live(reads, takes_rest=chance.random() < 0.5) for reads in ways]
    except Failure:
        raise
    except Exception as error:
        raise Failure(f"{type(error).__name__}: {error}") from error
    finally:
        logger.propagate = propagates
        logger.removeHandler(errors)
    if errors.texts:
        raise Failure(f"an internal error: {errors.texts[0]}")
    if QOS not in data:
        # With a prefetch it matters where a read ends: what an ack makes room for is delivered then.
        compare(*outcomes)


def cut_anywhere(data: bytes, chance: Random) -> list[bytes]:
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((1, 2, 10))))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def compare(whole: Outcome, *others: Outcome) -> None:
    """Raise Failure if the same octets in other reads led to something else."""
    for other in others:
        for name in ("frames", "is_over", "queues", "bindings"):
            if getattr(whole, name) != getattr(other, name):
                raise Failure(f"{name} depend on how reads are cut:\n{getattr(whole, name)}\n{getattr(other, name)}")
        # Confirms leave at the end of a read, so a connection that ends within it does not say all of them.
        known = whole.confirms.keys() & other.confirms.keys()
        if any(whole.confirms[key] != other.confirms[key] for key in known):
            raise Failure(f"confirms depend on how reads are cut:\n{whole.confirms}\n{other.confirms}")
        if not whole.is_over and whole.confirms.keys() != other.confirms.keys():
            raise Failure(f"confirms are lost:\n{whole.confirms}\n{other.confirms}")


# Running


def case(seed: int, number: int, bases: list[list[bytes]]) -> tuple[list[bytes], Random]:
    chance = Random(f"{seed}/{number}")
    return mutate(chance, chance.choice(bases), bases), chance


def shrink(pieces: list[bytes], failure: Failure) -> list[bytes]:
    """The same failure with as few pieces as a little patience finds."""
    attempts, at = 0, 0
    while at < len(pieces) and attempts < SHRINK_ATTEMPTS_MAX:
        attempts += 1
        fewer = pieces[:at] + pieces[at + 1 :]
        try:
            try_case(fewer, Random(0))
        except Failure as other:
            if str(other)[:20] == str(failure)[:20]:
                pieces = fewer
                continue
        at += 1
    return pieces


def fuzz(seed: int, numbers: Iterable[int], seconds: float = math.inf) -> int:
    """Try the cases of these numbers while CPU time is left; return how many. Raise Failure with a reproducer."""
    bases = streams()
    end = time.process_time() + seconds
    tried = 0
    for number in numbers:
        pieces, chance = case(seed, number, bases)
        try:
            try_case(pieces, chance)
        except Failure as failure:
            small = "\n".join(f"    {piece!r}" for piece in shrink(pieces, failure))
            raise Failure(
                f"{failure}\nseed {seed}, case {number}; its pieces:\n{small}\n"
                f"again: python -m tests.fuzzing --seed {seed} --case {number}"
            ) from failure
        tried += 1
        if time.process_time() >= end:
            break
    return tried
