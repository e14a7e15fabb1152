"""The definitions of a store, declared in a broker, and their problems; messages are not read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from amqp_broker.amqp import fields
from amqp_broker.amqp.message import Message
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.durability.journal import END, DefinitionKey, RangeState, Stored
from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.broker.operations.restoring import KINDS
from amqp_broker.settings.settings import Settings
from amqp_broker.store.environment import Environment
from amqp_broker.store.journal import NAMES, LmdbJournal, encode_key
from amqp_broker.store.seal import SEAL_BYTES, DamagedRecord, unseal

logger = logging.getLogger("amqp_broker.store")

Keeps: TypeAlias = Callable[[Message], bool]


class _Definitions(LmdbJournal):
    """A journal that reads no messages, and lets other numbers be damaged: they are reported elsewhere."""

    def _number_of(self, key: bytes, sealed: bytes) -> int:
        try:
            return super()._number_of(key, sealed)
        except DamagedRecord:
            return END

    def state_of(self, range_id: int) -> RangeState:
        try:
            return super().state_of(range_id)
        except DamagedRecord:
            return RangeState()

    def read(self, range_id: int, start: int, bytes_max: int) -> list[tuple[int, Stored]]:
        return []


class Contents:
    """The objects that a store declares.

    `broker` has the objects. `problems` has a sentence for each definition that cannot be declared; `undeclared` has
    the keys of those that can be read. `ranges` has, by range of the journal, the name of its owner and a test for
    messages that a restart keeps.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        journal = _Definitions(environment)
        journal.is_restoring = True
        # Ranges from this one on are free.
        self.next_range = journal.new_ranges(0)
        self.broker = Broker(Settings(), bytes, journal)
        self.problems: list[str] = []
        self.undeclared: list[DefinitionKey] = []
        if self.next_range == END:
            self.problems.append("the number of the next range is damaged.")
        self.ranges: dict[int, tuple[str, Keeps]] = {}
        definitions = self._decode()
        for kind, restore in KINDS.items():
            for key, value in definitions.get(kind, ()):
                try:
                    restore(self.broker, key, value)
                except Exception as error:
                    self.undeclared.append(key)
                    self.problems.append(f"{describe(key)} cannot be declared: {reason(error)}.")
        for user in self.broker.users.values():
            for vhost_name in {*user.permissions, *(name for name, _ in user.topic_permissions)} - {
                *self.broker.vhosts
            }:
                self.problems.append(
                    f"user '{user.name}' has permissions in vhost '{vhost_name}', which does not exist."
                )
        for vhost in self.broker.vhosts.values():
            for exchange in vhost.exchanges.values():
                if exchange.range_id is not None:
                    self._own(exchange.range_id, str(exchange), lambda message: True)
            for queue in vhost.queues.values():
                buffers = {buffer.id: buffer for buffer in queue.buffers}
                for range_id in queue.ranges:
                    self._own(range_id, str(queue), _keeps(buffers.get(range_id)))

    def _own(self, range_id: int, owner: str, keeps: Keeps) -> None:
        if range_id in self.ranges:
            self.problems.append(f"{owner} shares its messages with {self.ranges[range_id][0]}.")
        if range_id >= self.next_range:
            self.problems.append(f"{owner} has a range that will be given away again.")
        self.ranges[range_id] = owner, keeps

    def _decode(self) -> dict[str, list[tuple[DefinitionKey, dict[str, Any]]]]:
        found: dict[str, list[tuple[DefinitionKey, dict[str, Any]]]] = {}
        for stored_key, sealed in self._records():
            try:
                octets = bytes(unseal(stored_key, sealed))
            except DamagedRecord:
                self.problems.append(f"{_damaged_definition(stored_key, sealed)} is damaged.")
                continue
            try:
                value, end = fields.decode_table(octets)
                key = tuple(value.pop(NAMES))
                if end != len(octets) or encode_key(key) != stored_key or key[0] not in KINDS:
                    raise ValueError
            except Exception:
                self.problems.append(f"a definition ({stored_key.partition(b':')[0]!r}) cannot be read.")
                continue
            found.setdefault(key[0], []).append((key, value))
        return found

    def _records(self) -> Iterator[tuple[bytes, bytes]]:
        environment = self._environment
        with environment.lmdb.begin() as txn, txn.cursor(environment.tables["definitions"]) as cursor:
            yield from cursor


def _damaged_definition(stored_key: bytes, sealed: bytes) -> str:
    """Return the name of a damaged definition, if its names are whole."""
    try:
        key = tuple(fields.decode_table(sealed[:-SEAL_BYTES])[0][NAMES])
        if encode_key(key) == stored_key:
            return f"the definition of {describe(key)}"
    except Exception as error:
        logger.debug("the names of a damaged definition cannot be read: %s", error)
    return f"a definition ({stored_key.partition(b':')[0].decode(errors='replace')})"


def _keeps(buffer: PagedBuffer | None) -> Keeps:
    return (lambda message: True) if buffer is None else buffer.keeps


def describe(key: DefinitionKey) -> str:
    """Return the name of a definition, for example `queue 'orders' in vhost '/'`."""
    kind = key[0].replace("_", " ")
    if key[0] == "binding":
        _, vhost, source, destination_kind, destination, routing_key, _ = key
        return (
            f"binding '{routing_key}' of exchange '{source}' to {destination_kind} '{destination}' in vhost '{vhost}'"
        )
    if key[0] == "deletion":
        return f"deletion of {key[2]} '{key[3]}' in vhost '{key[1]}'"
    if key[0] in ("exchange", "queue", "policy", "operator_policy"):
        return f"{kind} '{key[2]}' in vhost '{key[1]}'"
    if key[0] == "parameter":
        return f"parameter '{key[3]}' of component '{key[2]}' in vhost '{key[1]}'"
    if key[0] in ("permission", "topic_permission"):
        return f"{kind} of user '{key[1]}' in vhost '{key[2]}'"
    return f"{kind} '{key[1]}'"


def reason(error: Exception) -> str:
    """Return the reason for which a definition cannot be declared."""
    if isinstance(error, KeyError):
        return f"there is no '{error.args[0]}'"
    return f"{error}" or type(error).__name__
