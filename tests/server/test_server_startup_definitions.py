"""A server loads definitions before its port opens; failing definitions leave its store unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.server.server import Server
from amqp_broker.settings.settings import Settings
from tests.client import Client
from tests.running import RunningServer

QUEUE = {"vhost": "/", "name": "q", "durable": True, "auto_delete": False, "arguments": {"x-queue-type": "quorum"}}
DOCUMENT = {
    "users": [{"name": "me", "password": "secret", "tags": ["administrator"]}],
    "vhosts": [{"name": "/", "description": "mine"}],
    "permissions": [{"user": "me", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
    "queues": [QUEUE],
}


def test_defined_users_log_in_and_find_defined_queues() -> None:
    with RunningServer(definitions=json.dumps(DOCUMENT)) as running, Client(running.port) as client:
        client.open(user="me", password="secret")
        assert client.declare("q", durable=True, arguments={"x-queue-type": "quorum"}).message_count == 0


def test_loaded_definitions_remain_after_a_restart_without_them(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ephemeral": False, "data_dir": str(tmp_path)}
    RunningServer(**settings, definitions=json.dumps(DOCUMENT)).__enter__().stop()
    with RunningServer(**settings) as running, Client(running.port) as client:
        client.open(user="me", password="secret")
        client.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
        assert running.server.broker.users.keys() == {"me"}
        assert running.server.broker.vhosts["/"].metadata.description == "mine"


def test_failing_definitions_leave_the_store_unchanged(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ephemeral": False, "data_dir": str(tmp_path)}
    RunningServer(**settings).__enter__().stop()
    late = {"vhost": "/", "name": "late", "type": "x-delayed-message", "arguments": {"x-delayed-type": "none"}}
    with pytest.raises(DefinitionsError, match="exchange 'late' in vhost '/'"):
        Server(
            Settings(
                **settings,
                definitions=json.dumps({**DOCUMENT, "exchanges": [{**late, "name": "e", "type": "topic"}, late]}),
            )
        )
    with RunningServer(**settings) as running:
        broker = running.server.broker
        assert (list(broker.users), list(broker.vhosts["/"].queues)) == (["guest"], [])
        assert "e" not in broker.vhosts["/"].exchanges
