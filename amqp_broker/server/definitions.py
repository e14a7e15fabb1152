"""What is declared before the first client is let in: the definitions that the settings name, or the first user.

As in RabbitMQ, a broker that starts for the first time creates its default vhost and user unless there are definitions
to load, whatever these say (rabbit.erl, maybe_insert_default_data). Definitions are loaded at each start; they add to
what is there.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final, NamedTuple

from amqp_broker.broker.broker import Broker
from amqp_broker.management.definitions import parse
from amqp_broker.management.importing import DefinitionsError, Import

logger = logging.getLogger("amqp_broker.server")

# How many of the objects that are passed over are told one by one.
NOTES_MAX: Final = 20


class DefinitionsUnreadable(DefinitionsError):
    """There is no such file, or it is not for us to read."""


class Source(NamedTuple):
    """A document, and what texts call the place that it is from."""

    name: str
    document: Any


def sources(setting: str) -> list[Source]:
    """The documents that a setting names: a file, all *.json of a folder by name, or JSON itself.

    Raises DefinitionsError.
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
    """Declare what the settings say, which name definitions; `is_blank` tells that there was nothing before.

    Raises DefinitionsError, which names the file and the object.
    """
    config = broker.config
    found = sources(config.definitions)
    if config.always_create_default_user and config.default_user not in broker.users:
        broker.add_defaults()
    for name, document in found:
        try:
            work = Import(broker, document)
            for _ in work.run():
                pass
        except DefinitionsError as error:
            raise DefinitionsError(f"{name}: {error}") from None
        logger.info("imported definitions from %s: %d objects", name, work.steps)
        for note in work.notes[:NOTES_MAX]:
            logger.warning("%s: %s", name, note)
        if len(work.notes) > NOTES_MAX:
            logger.warning("%s: %d more objects are passed over", name, len(work.notes) - NOTES_MAX)
    if not broker.users:
        logger.warning(
            "definitions define no user; RABBITMQ_DEFAULT_USER is ignored as in RabbitMQ "
            "(set AMQP_BROKER_ALWAYS_CREATE_DEFAULT_USER=1)"
        )
    elif is_blank and config.default_user not in broker.users:
        logger.warning(
            "there are definitions to load, so the default user '%s' is not created, as in RabbitMQ "
            "(set AMQP_BROKER_ALWAYS_CREATE_DEFAULT_USER=1)",
            config.default_user,
        )
