"""Messages as records of the store:

    format     1 octet     1
    flags      1 octet     persistent, dead-lettered, has a table, has a message number, had empty headers
    channel    2 octets    channel number in the frames of the content
    returns    4 octets    number of returns to the queue
    deadline   8 octets    ms since the epoch; 0 if the message does not expire
    address                exchange and routing key, as short strings
    number     16 octets   if traced, the run of the broker that gave the number, and the number
    table                  if any of this is to be kept, a field table with its size:
                           blind keys (an array under an empty key), number of failures, whether it is rerouted;
                           of the returns, those that are failures (returns_failed); the end of a delay (ready_at);
                           reason and time of a kept dead letter (death, died_at)
    content                header and body frames, as they arrived

Numbers are big-endian.
"""

from __future__ import annotations

import struct
from typing import Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Address, Message, NumberedMessage, SpecialMessage
from amqp_broker.broker.durability.journal import Death, Stored
from amqp_broker.store.seal import SEAL_BYTES, DamagedRecord

FORMAT: Final = 1
PERSISTENT: Final = 1
HAS_DIED: Final = 2
HAS_TABLE: Final = 4
HAS_NUMBER: Final = 8
HAD_EMPTY_TABLE: Final = 16

HEAD: Final = struct.Struct(">BBHIQ")
RUN_BYTES: Final = 8
NUMBER: Final = struct.Struct(f">{RUN_BYTES}sQ")
# A bit of the number, for messages that a recorder has selected. It means nothing to other runs, as the number.
IS_RECORDED: Final = 1 << 63
ADDRESSES_MAX: Final = 4096
# Keys of the table whose values are integers.
_NUMBERS: Final = ("failures", "returns_failed", "ready_at", "died_at")


class MalformedRecord(DamagedRecord):
    """The octets are not a message of this store."""


def encode(stored: Stored, run: bytes = bytes(RUN_BYTES)) -> bytes:
    """Return the record of a message; `run` identifies the run of the broker that gave its number."""
    message = stored.message
    flags = PERSISTENT if message.is_persistent else 0
    number = b""
    table: fields.Table = {}
    if isinstance(message, SpecialMessage):
        if message.has_died:
            flags |= HAS_DIED | HAD_EMPTY_TABLE if message.had_empty_table else HAS_DIED
        if message.blind_keys or message.failures or message.is_rerouted:
            table = {"": list(message.blind_keys), "failures": message.failures, "rerouted": message.is_rerouted}
    if isinstance(message, NumberedMessage) and message.number:
        flags |= HAS_NUMBER
        number = NUMBER.pack(run, message.number | IS_RECORDED if message.is_recorded else message.number)
    if stored.is_rewritten:
        table |= _history(stored)
    encoded = b""
    if table:
        flags |= HAS_TABLE
        encoded = fields.encode_table(table)
    head = HEAD.pack(FORMAT, flags, message.channel, stored.returns, stored.deadline_ms or 0)
    return b"".join((head, message.address.suffix[1:-1], number, encoded, message.content))


def _history(stored: Stored) -> fields.Table:
    """Return the parts of a table that say how a message came back, and for what it waits."""
    history: fields.Table = {}
    if stored.failures is not None:
        history["returns_failed"] = stored.failures
    if stored.ready_at_ms is not None:
        history["ready_at"] = stored.ready_at_ms
    if stored.death is not None:
        history["death"], history["died_at"] = stored.death
    return history


class Decoder:
    """Decodes messages; those with the same exchange and routing key share an address.

    Message numbers of another run of the broker are dropped: this run gives them to other messages.
    """

    def __init__(self, run: bytes = bytes(RUN_BYTES)) -> None:
        self._run = run
        self._addresses: dict[bytes, Address] = {}
        # Dead-lettered messages have addresses of their own (broker/routing/dead_letter.py).
        self._dead_addresses: dict[bytes, Address] = {}

    def decode(self, record: bytes | memoryview) -> Stored:
        """Return the message of a record. Raise MalformedRecord."""
        try:
            version, flags, channel, returns, deadline_ms = HEAD.unpack_from(record)
            at = HEAD.size
            key_at = at + 1 + record[at]
            end = key_at + 1 + record[key_at]
        except (struct.error, IndexError):
            raise MalformedRecord("a record is cut short") from None
        if version != FORMAT:
            raise MalformedRecord(f"a record has format {version}, not {FORMAT}")
        names = bytes(record[at:end])
        addresses = self._dead_addresses if flags & HAS_DIED else self._addresses
        address = addresses.get(names) or _new_address(addresses, names, key_at - at)
        deadline = deadline_ms or None
        if not flags & ~PERSISTENT:
            return Stored(Message(address, bytes(record[end:]), channel, bool(flags)), deadline, returns)
        number = 0
        table: fields.Table = {}
        if flags & HAS_NUMBER:
            number = self._number(record, end)
            end += NUMBER.size
        content = bytes(record[end:])
        if flags & HAS_TABLE:
            table, start = _table_in(content)
            content = content[start:]
        death = Death(table["death"], table["died_at"]) if "death" in table else None
        history = table.get("returns_failed"), table.get("ready_at"), death
        if not flags & (HAS_DIED | HAS_NUMBER) and "" not in table:
            return Stored(Message(address, content, channel, bool(flags & PERSISTENT)), deadline, returns, *history)
        message = SpecialMessage(address, content, channel, bool(flags & PERSISTENT))
        message.blind_keys = table.get("", [])
        message.failures = table.get("failures", 0)
        message.is_rerouted = table.get("rerouted", False)
        message.has_died = bool(flags & HAS_DIED)
        message.had_empty_table = bool(flags & HAD_EMPTY_TABLE)
        message.number = number & ~IS_RECORDED
        message.is_recorded = number & IS_RECORDED != 0
        return Stored(message, deadline, returns, *history)

    def _number(self, record: bytes | memoryview, at: int) -> int:
        try:
            run, number = NUMBER.unpack_from(record, at)
        except struct.error:
            raise MalformedRecord("a record is cut short") from None
        return int(number) if run == self._run else 0


def _table_in(content: bytes) -> tuple[fields.Table, int]:
    """Return the table before a content, and where that begins. Raise MalformedRecord."""
    try:
        table, start = fields.decode_table(content)
    except fields.MalformedTable:
        raise MalformedRecord("a record has a malformed table") from None
    keys = table.get("", [])
    if (
        not isinstance(keys, list)
        or not all(isinstance(key, str) for key in keys)
        or not all(fields.is_integer(table[name]) for name in _NUMBERS if name in table)
        or not isinstance(table.get("rerouted", False), bool)
        or not isinstance(table.get("death", ""), str)
        or ("death" in table) is not ("died_at" in table)
    ):
        raise MalformedRecord("a record has a table with other values than this broker writes")
    return table, start


def likely_body_bytes(record: bytes | memoryview) -> int:
    """Return the size of the body of a message whose record is damaged, as far as it can be known."""
    try:
        body_bytes = Decoder().decode(record[:-SEAL_BYTES]).message.body_bytes
    except Exception:
        return 0
    return body_bytes if body_bytes <= len(record) else 0


def _new_address(addresses: dict[bytes, Address], names: bytes, key_at: int) -> Address:
    if len(addresses) >= ADDRESSES_MAX:
        addresses.clear()
    exchange = names[1:key_at].decode("utf-8", "surrogateescape")
    routing_key = names[key_at + 1 :].decode("utf-8", "surrogateescape")
    address = addresses[names] = Address(exchange, routing_key)
    return address
