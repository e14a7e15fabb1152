"""Definitions are loaded before the broker accepts clients."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.broker.broker import Broker
from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.server import startup_definitions
from amqp_broker.server.server import Server
from amqp_broker.server.startup_definitions import NOTES_MAX, DefinitionsUnreadable, load, sources
from amqp_broker.settings.settings import Settings

VHOST = {"vhosts": [{"name": "v"}]}
USER = {"users": [{"name": "u", "password": "p", "tags": ""}]}
QUEUE = {"queues": [{"vhost": "v", "name": "q", "durable": True}]}
IGNORED = "RABBITMQ_DEFAULT_USER is ignored as in RabbitMQ"


def started(document: Any = None, *, is_blank: bool = True, **settings: Any) -> Broker:
    """Return a broker that has loaded a document."""
    text = "" if document is None else json.dumps(document)
    broker = Broker(Settings(**{"definitions": text, **settings}), os.urandom)
    load(broker, is_blank)
    return broker


def test_the_first_start_creates_the_default_user(tmp_path: Path) -> None:
    def users(settings: Settings) -> set[str]:
        server = Server(settings)
        if server.store is not None:
            server.store.abandon()
        return set(server.broker.users)

    durable = Settings(data_dir=str(tmp_path))
    assert users(Settings(ephemeral=True)) == users(durable) == {"guest"}


@pytest.mark.parametrize("document", [{}, VHOST, {**VHOST, **USER}])
def test_definitions_prevent_the_default_user(document: dict[str, Any]) -> None:
    broker = started(document)
    assert broker.users.keys() == {user["name"] for user in document.get("users", ())}
    assert broker.vhosts.keys() == {vhost["name"] for vhost in document.get("vhosts", ())}


def test_definitions_without_users_log_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    started(VHOST)
    assert [record.levelname for record in caplog.records if IGNORED in record.getMessage()] == ["WARNING"]


def test_a_missing_default_user_logs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    started(USER, default_user="me")
    assert "the default user 'me' is not created, as in RabbitMQ" in caplog.text
    caplog.clear()
    started(USER, default_user="u")
    assert "not created" not in caplog.text


def test_a_setting_creates_the_default_user_in_any_case(caplog: pytest.LogCaptureFixture) -> None:
    broker = started({**VHOST, **USER}, always_create_default_user=True)
    assert (set(broker.users), set(broker.vhosts)) == ({"guest", "u"}, {"/", "v"})
    assert broker.users["guest"].can_open("/")
    assert "not created" not in caplog.text


def test_definitions_override_the_default_user() -> None:
    broker = started({"users": [{"name": "guest", "password": "p", "tags": ""}]}, always_create_default_user=True)
    assert broker.users["guest"].accepts(b"p")


def test_an_existing_default_user_is_unchanged() -> None:
    broker = Broker(Settings(definitions="{}", always_create_default_user=True), os.urandom)
    user = broker.users.add("guest", "changed")
    load(broker, is_blank=False)
    assert broker.users == {"guest": user}


def test_the_files_of_a_folder_are_loaded_by_name(tmp_path: Path) -> None:
    for name, document in (("2.json", QUEUE), ("1.json", VHOST), ("3.txt", "no JSON")):
        (tmp_path / name).write_text(json.dumps(document), "utf-8")
    broker = started(definitions=str(tmp_path))
    assert broker.vhosts["v"].queues.keys() == {"q"}


def test_the_setting_may_be_json_itself() -> None:
    assert sources(' \n{"a": 1}') == [("definitions", {"a": 1})]


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DefinitionsUnreadable, match=f"{tmp_path}/none: No such file or directory"):
        sources(str(tmp_path / "none"))
    with pytest.raises(DefinitionsUnreadable, match="File name too long"):
        sources("x" * 5000)


def test_a_file_with_invalid_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{", "utf-8")
    with pytest.raises(DefinitionsError, match=f"{tmp_path}/a.json: not JSON: Expecting property name"):
        sources(str(tmp_path))


def test_an_error_names_the_file_and_the_object(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(QUEUE), "utf-8")
    text = f"{tmp_path}/a.json: queue 'q' in vhost 'v': Please create virtual host \"v\" prior"
    with pytest.raises(DefinitionsError, match=text):
        started(definitions=str(tmp_path / "a.json"))


def test_a_document_of_one_vhost_is_refused() -> None:
    with pytest.raises(DefinitionsError, match="Virtual host does not exist and is not specified in definitions file"):
        started({"queues": [{"name": "q"}]})


def test_skipped_objects_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    queues = [{"vhost": "v", "name": f"amq.{number}"} for number in range(NOTES_MAX + 5)]
    started({**VHOST, "queues": queues})
    told = [record.getMessage() for record in caplog.records]
    assert sum("Skipping import of a queue" in line for line in told) == NOTES_MAX
    assert "definitions: 5 more objects are skipped" in told
    assert "imported definitions from definitions: 1 objects" in told
    assert startup_definitions.logger.name == "amqp_broker.server"
