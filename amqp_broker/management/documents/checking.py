"""Checking definitions: all faults of a document, where an import ends with the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amqp_broker.amqp.errors import AMQPError, InvalidParameter
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.documents.definition import DefinitionsError, Entry
from amqp_broker.management.documents.importing import Import


class Check(Import):
    """An import into a broker of its own, which goes on after a fault. `faults` are those so far, a sentence each.

    An object that refers to a faulty one is not at fault.
    """

    def __init__(self, broker: Broker, document: Any, vhost: str | None = None) -> None:
        self.faults: list[str] = []
        super().__init__(broker, document, vhost)

    def _refuse(self, error: DefinitionsError) -> None:
        self.faults.append(" ".join(str(error).split()))

    def _read_section(self, section: str, kind: str, read: Callable[[Entry], None]) -> Steps[None]:
        def read_or_note(entry: Entry) -> None:
            try:
                read(entry)
            except (DefinitionsError, AMQPError, InvalidParameter):
                self._note(kind, entry.values)
                raise

        try:
            yield from super()._read_section(section, kind, read_or_note)
        except DefinitionsError as error:
            self._refuse(error)

    def _note(self, kind: str, values: dict[str, Any]) -> None:
        """Take a faulty object for declared, if it has a name."""
        name, vhost = values.get("name"), self._vhost or values.get("vhost")
        if not isinstance(name, str):
            return
        if kind == "user":
            self.broker.users.put(name, b"", self.broker.users.hashing_algorithm, [])
            self._users.add(name)
        elif kind == "vhost":
            self.broker.add_vhost(name)
            self._types[name] = self.broker.settings.default_queue_type
        elif kind in ("queue", "exchange") and isinstance(vhost, str):
            there = self._new_queues if kind == "queue" else self._new_exchanges
            there.setdefault(vhost, set()).add(name)

    def _check_queue_limits(self) -> None:
        try:
            super()._check_queue_limits()
        except DefinitionsError as error:
            self._refuse(error)
