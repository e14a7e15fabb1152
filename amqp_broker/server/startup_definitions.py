"""Loads the definitions that the settings name, before the broker accepts its first client.

As in RabbitMQ, the first start creates the default vhost and user unless there are definitions to load, whatever they
contain (rabbit.erl, maybe_insert_default_data). Definitions are loaded at each start and added to existing objects.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final, NamedTuple

from amqp_broker.broker.broker import Broker
from amqp_broker.management.documents.definition import DefinitionsError, with_remedy
from amqp_broker.management.documents.importing import Import
from amqp_broker.management.documents.parsing import parse

logger = logging.getLogger("amqp_broker.server")

# Skipped objects that are logged one by one.
NOTES_MAX: Final = 20


class DefinitionsUnreadable(DefinitionsError):
    """The file does not exist or cannot be read."""


class Source(NamedTuple):
    """A document, and the name of its origin for messages."""

    name: str
    document: Any


def sources(setting: str) -> list[Source]:
    """Read the documents of a setting: a file, the *.json files of a folder in order, or JSON itself.

    Raise DefinitionsError.
    """
    if setting.lstrip().startswith("{"):
        return [_source("definitions", setting.encode())]
    path = Path(setting)
    try:
        paths = sorted(path.glob("*.json")) if path.is_dir() else [path]
        return [_source(str(path), path.read_bytes()) for path in paths]
    except OSError as error:
        raise DefinitionsUnreadable(f"{error.filename or setting}: {error.strerror}") from None


def _source(name: str, octets: bytes) -> Source:
    try:
        return Source(name, parse(octets))
    except DefinitionsError as error:
        raise DefinitionsError(f"{name}: {error}") from None


def load(broker: Broker, is_blank: bool) -> None:
    """Load the definitions of the settings; `is_blank` is true at the first start.

    Raise DefinitionsError with the file and the object.
    """
    settings = broker.settings
    found = sources(settings.definitions)
    if settings.always_create_default_user and settings.default_user not in broker.users:
        broker.add_defaults()
    for name, document in found:
        try:
            work = Import(broker, document)
            for _ in work.run():
                pass
        except DefinitionsError as error:
            raise DefinitionsError(f"{name}: {with_remedy(str(error))}") from None
        logger.info("imported definitions from %s: %d objects", name, work.steps)
        for note in work.notes[:NOTES_MAX]:
            logger.warning("%s: %s", name, note)
        if len(work.notes) > NOTES_MAX:
            logger.warning("%s: %d more objects are skipped", name, len(work.notes) - NOTES_MAX)
    if not broker.users:
        logger.warning(
            "definitions define no user; RABBITMQ_DEFAULT_USER is ignored as in RabbitMQ "
            "(set AMQP_BROKER_ALWAYS_CREATE_DEFAULT_USER=1)"
        )
    elif is_blank and settings.default_user not in broker.users:
        logger.warning(
            "there are definitions to load, so the default user '%s' is not created, as in RabbitMQ "
            "(set AMQP_BROKER_ALWAYS_CREATE_DEFAULT_USER=1)",
            settings.default_user,
        )
