"""A record of the store: a message, a chunk of a stream, or the head of a chunk.

It is refused as damaged, or means the same when it is written and read again. The first octet chooses the kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from amqp_broker.amqp.message import Message, SpecialMessage
from amqp_broker.broker.durability.chunk import Chunk, ChunkHead
from amqp_broker.broker.durability.journal import Death, Stored
from amqp_broker.store import chunks, codec
from amqp_broker.store.seal import DamagedRecord, seal, unseal
from tests.broker_parts import new_message
from tests.fuzzing import fields
from tests.fuzzing.target import Target, expect
from tests.mutations import MUTATIONS

MESSAGE, CHUNK, DAMAGED_CHUNK = range(3)
FIRST = 5
KEY = chunks.NUMBER.pack(FIRST)


def check(data: bytes) -> None:
    kind, record = data[:1], data[1:]
    if kind == bytes([MESSAGE]):
        check_message(record)
    elif kind == bytes([CHUNK]):
        check_chunk(record)
    elif kind == bytes([DAMAGED_CHUNK]):
        # The head of a chunk is read before its checksum can be.
        try:
            chunks.decode_head(FIRST, record)
        except DamagedRecord as error:
            expect(str(error), "damage without a sentence")
    expect(codec.likely_body_bytes(record) <= len(record), "a body that is larger than its record")


def check_message(record: bytes) -> None:
    try:
        stored = codec.Decoder(b"run here").decode(record)
    except DamagedRecord as error:
        expect(str(error), "damage without a sentence")
        return
    again = codec.Decoder(b"run here").decode(codec.encode(stored, b"run here"))
    expect(facts(again) == facts(stored), f"{facts(stored)} becomes {facts(again)}")


def facts(stored: Stored) -> tuple[object, ...]:
    """Return all that a record keeps of a message."""
    message = stored.message
    names = ["blind_keys", "failures", "is_rerouted", "has_died", "number"]
    # Flags that mean nothing otherwise.
    names += ["had_empty_table"] if getattr(message, "has_died", False) else []
    names += ["is_recorded"] if getattr(message, "number", 0) else []
    special = [getattr(message, name, None) or None for name in names]
    kept = [stored.deadline_ms, stored.returns]
    history = (stored.failures, stored.ready_at_ms, stored.death) if stored.is_rewritten else None
    return kept, history, message_facts(message), special


def message_facts(message: Message) -> tuple[object, ...]:
    return message.exchange, message.routing_key, message.content, message.channel, message.is_persistent


def check_chunk(record: bytes) -> None:
    """Check a chunk whose head has a checksum, which the record has at its end."""
    size = int.from_bytes(record[:1], "big")
    head, rest = record[1 : size + 1], record[size + 1 :]
    sealed = seal(KEY, head) + rest
    try:
        chunk = chunks.decode(FIRST, sealed)
        found, _ = chunks.decode_head(FIRST, sealed)
    except DamagedRecord as error:
        expect(str(error), "damage without a sentence")
        return
    expect(found == chunk.head, "the head of a chunk differs from that of its messages")
    if not chunk.messages:
        # They are lost.
        return
    again = chunks.decode(FIRST, bytes(chunks.encode(chunk)))
    expect(list(map(message_facts, again.messages)) == list(map(message_facts, chunk.messages)), "other messages")
    expect(again.head._replace(first=FIRST) == chunk.head, f"{chunk.head} becomes {again.head}")


def mutate(chance: Random, data: bytes) -> bytes:
    kind, record = data[:1], data[1:]
    if not record or chance.randrange(8) == 0:
        return bytes([chance.randrange(3)]) + record
    if kind == bytes([MESSAGE]) and chance.randrange(2) and len(record) > codec.HEAD.size:
        # A table between the names and the content.
        at = codec.HEAD.size + chance.choice((2, 7))
        table = fields.mutate(chance, b"")
        changed = bytearray(record)
        changed[1] |= codec.HAS_TABLE
        return kind + bytes(changed[:at]) + len(table).to_bytes(4, "big") + table + bytes(changed[at:])
    return kind + chance.choice(MUTATIONS)(chance, record)


def seeds() -> Iterator[bytes]:
    message = new_message(b"body", "a.b", delivery_mode=2, headers={"n": 1})
    for stored in (
        Stored(message, None, 0),
        Stored(message, 1_700_000_000_000, 3, 1, 1_700_000_000_001, Death("expired", 1_700_000_000_000)),
        Stored(special(message), None, 0),
    ):
        yield bytes([MESSAGE]) + codec.encode(stored, b"run here")
    for filters in (None, frozenset(["a", "b"])):
        head = ChunkHead(FIRST, 3, 1_700_000_000_000, 60, filters, True)
        sealed = bytes(chunks.encode(Chunk(head, [message, message, new_message(b"other", "c")])))
        yield bytes([DAMAGED_CHUNK]) + sealed
        _, at = chunks.decode_head(FIRST, sealed)
        start = bytes(unseal(KEY, sealed[:at]))
        yield bytes([CHUNK, len(start)]) + start + sealed[at:]
    yield bytes([DAMAGED_CHUNK]) + chunks.lost(FIRST, 3, 1_700_000_000_000)


def special(message: Message) -> Message:
    copy = SpecialMessage.of(message)
    copy.blind_keys, copy.failures, copy.is_rerouted = ["secret"], 2, True
    copy.has_died, copy.number, copy.is_recorded = True, 7, True
    return copy


TARGET = Target(
    check, seeds, mutate, words=("returns_failed", "ready_at", "death", "died_at", "failures"), octets_max=600
)
