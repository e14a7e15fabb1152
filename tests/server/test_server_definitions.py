"""A server that loads definitions: before its port opens, and into its store or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amqp_broker.config import Config
from amqp_broker.management.importing import DefinitionsError
from amqp_broker.server.server import Server
from tests.client import Client
from tests.running import RunningServer

QUEUE = {"vhost": "/", "name": "q", "durable": True, "auto_delete": False, "arguments": {"x-queue-type": "quorum"}}
DOCUMENT = {
    "users": [{"name": "me", "password": "secret", "tags": ["administrator"]}],
    "vhosts": [{"name": "/", "description": "mine"}],
    "permissions": [{"user": "me", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
    "queues": [QUEUE],
}


def test_who_is_defined_is_let_in_and_finds_what_is_defined() -> None:
    with RunningServer(definitions=json.dumps(DOCUMENT)) as running, Client(running.port) as client:
        client.open(user="me", password="secret")
        assert client.declare("q", durable=True, arguments={"x-queue-type": "quorum"}).message_count == 0


def test_what_was_loaded_once_is_there_without_definitions(tmp_path: Path) -> None:
    settings = {"ephemeral": False, "data_dir": str(tmp_path)}
    RunningServer(**settings, definitions=json.dumps(DOCUMENT)).__enter__().stop()
    with RunningServer(**settings) as running, Client(running.port) as client:
        client.open(user="me", password="secret")
        client.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
        assert running.server.broker.users.keys() == {"me"}
        assert running.server.broker.vhosts["/"].metadata.description == "mine"


def test_definitions_that_fail_in_the_middle_change_nothing_in_the_store(tmp_path: Path) -> None:
    settings = {"ephemeral": False, "data_dir": str(tmp_path)}
    RunningServer(**settings).__enter__().stop()
    late = {"vhost": "/", "name": "late", "type": "x-delayed-message", "arguments": {"x-delayed-type": "none"}}
    with pytest.raises(DefinitionsError, match="exchange 'late' in vhost '/'"):
        Server(
            Config(
                **settings,
                definitions=json.dumps({**DOCUMENT, "exchanges": [{**late, "name": "e", "type": "topic"}, late]}),
            )
        )
    with RunningServer(**settings) as running:
        broker = running.server.broker
        assert (broker.users.keys(), broker.vhosts["/"].queues) == ({"guest"}, {})
        assert "e" not in broker.vhosts["/"].exchanges
