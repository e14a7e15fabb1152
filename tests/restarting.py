"""A broker that is killed, and the one that finds what was committed."""

from __future__ import annotations

from amqp_broker.broker.operations import restoring
from tests.memory_journal import MemoryJournal
from tests.peer import Lab


def durable_lab(compat: str) -> Lab:
    """Return a lab whose broker has a journal."""
    lab = Lab(compat=compat)
    lab.broker.journal = MemoryJournal()
    return lab


def restarted(lab: Lab) -> Lab:
    """Commit the journal of a lab, and return a lab of the same time whose broker has restored it."""
    journal = lab.broker.journal
    assert isinstance(journal, MemoryJournal)
    journal.commit()
    again = Lab(compat=lab.broker.settings.compat)
    again.now = again.broker.now = lab.now
    again.broker.journal = MemoryJournal(journal.disk)
    again.broker.journal.is_restoring = True
    restoring.restore(again.broker, again.broker.journal.definitions_of)
    again.broker.journal.is_restoring = False
    return again
