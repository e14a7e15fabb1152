"""A document of definitions.

It is refused with a sentence and changes nothing, or can be exported and imported again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from amqp_broker.broker.broker import Broker
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.management.documents.exporting import exporting
from amqp_broker.management.documents.importing import SECTIONS, Import, import_
from amqp_broker.management.documents.parsing import parse
from amqp_broker.management.http import json as answers_json
from tests.fuzzing import documents
from tests.fuzzing.target import Failure, Target, expect
from tests.peer import Lab

KEYS = (
    *("name", "vhost", "type", "durable", "auto_delete", "internal", "arguments", "source", "destination", "user"),
    *("destination_type", "routing_key", "password_hash", "hashing_algorithm", "tags", "limits", "configure", "write"),
    *("read", "pattern", "apply-to", "definition", "priority", "component", "value", "x-queue-type", "max-length"),
    *("message-ttl", "dead-letter-exchange", "x-match", "alternate-exchange", "metadata", "default_queue_type"),
    *("rabbit_version", "rabbitmq_version", "password", "exchange", "src-uri", "dest-uri", "src-queue", "dest-queue"),
    *SECTIONS,
)


def exported(broker: Broker) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(answers_json.encode(finished(exporting(broker, None))))
    return {name: sorted(map(shown, listed)) for name, listed in document.items() if isinstance(listed, list)}


def shown(one: Any) -> str:
    return json.dumps(one, sort_keys=True)


def check(data: bytes) -> None:
    try:
        document = parse(data)
    except DefinitionsError:
        return
    broker = Lab().broker
    before = exported(broker)
    try:
        checked = Import(broker, document)
    except DefinitionsError as error:
        expect(str(error), "a refusal without a sentence")
        expect(exported(broker) == before, f"a document that is refused has changed something: {error}")
        return
    try:
        for _ in checked.run():
            pass
    except DefinitionsError as error:
        expect(str(error), "a refusal without a sentence")
        return
    finally:
        finished(exporting(broker, None))
    octets = answers_json.encode(finished(exporting(broker, None)))
    other = Lab().broker
    try:
        import_(other, parse(octets))
    except DefinitionsError as error:
        raise Failure(f"an export cannot be imported: {error}") from None
    for section, listed in exported(broker).items():
        # A cluster's own parameters are not exchanged.
        if section != "global_parameters":
            expect(exported(other)[section] == listed, f"{section}: {listed} become {exported(other)[section]}")


def mutate(chance: Random, data: bytes) -> bytes:
    return documents.mutate(chance, data, KEYS)


EVERYTHING: dict[str, Any] = {
    "rabbit_version": "4.2.1",
    "users": [
        {"name": "u", "password_hash": "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "tags": ["management"]},
        {"name": "v", "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha512", "tags": "a,b"},
    ],
    "vhosts": [{"name": "v", "metadata": {"description": "d", "tags": ["t"], "default_queue_type": "quorum"}}],
    "permissions": [{"user": "u", "vhost": "v", "configure": ".*", "write": "", "read": "^a$"}],
    "topic_permissions": [{"user": "u", "vhost": "v", "exchange": "amq.topic", "write": "a", "read": "b"}],
    "parameters": [
        {"vhost": "v", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 10}},
        {
            "vhost": "/",
            "component": "shovel",
            "name": "s",
            "value": {"src-uri": "amqp://", "src-queue": "q", "dest-uri": "amqp://", "dest-queue": "r"},
        },
    ],
    "global_parameters": [{"name": "g", "value": {"a": [1, "x", None]}}],
    "policies": [
        {
            "vhost": "/",
            "name": "p",
            "pattern": "^q",
            "apply-to": "queues",
            "definition": {"max-length": 5, "dead-letter-exchange": "x", "message-ttl": 60000},
            "priority": 1,
        }
    ],
    "queues": [
        {"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {"x-max-priority": 5}},
        {"name": "r", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {"x-queue-type": "stream"}},
        {"name": "s", "vhost": "v", "type": "quorum", "durable": True, "auto_delete": False, "arguments": {}},
    ],
    "exchanges": [
        {
            "name": "x",
            "vhost": "/",
            "type": "headers",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "arguments": {"alternate-exchange": "amq.fanout"},
        }
    ],
    "bindings": [
        {
            "source": "x",
            "vhost": "/",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "k",
            "arguments": {"x-match": "any", "n": 1},
        }
    ],
}


def seeds() -> Iterator[bytes]:
    yield b"{}"
    yield msgspec.json.encode(EVERYTHING)
    for section in EVERYTHING:
        yield msgspec.json.encode({section: EVERYTHING[section]})


TARGET = Target(check, seeds, mutate, words=tuple(f'"{key}":' for key in KEYS), octets_max=4000)
