"""What a broker declares before anybody is let in."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.broker.broker import Broker
from amqp_broker.config import Config
from amqp_broker.management.importing import DefinitionsError
from amqp_broker.server import definitions
from amqp_broker.server.definitions import NOTES_MAX, DefinitionsUnreadable, load, sources
from amqp_broker.server.server import Server

VHOST = {"vhosts": [{"name": "v"}]}
USER = {"users": [{"name": "u", "password": "p", "tags": ""}]}
QUEUE = {"queues": [{"vhost": "v", "name": "q", "durable": True}]}
IGNORED = "RABBITMQ_DEFAULT_USER is ignored as in RabbitMQ"


def started(document: Any = None, *, is_blank: bool = True, **settings: Any) -> Broker:
    """A broker that has loaded a document."""
    text = "" if document is None else json.dumps(document)
    broker = Broker(Config(**{"definitions": text, **settings}), os.urandom)
    load(broker, is_blank)
    return broker


def test_without_definitions_there_is_the_default_user_at_the_first_start(tmp_path: Path) -> None:
    def users(config: Config) -> set[str]:
        server = Server(config)
        if server.store is not None:
            server.store.abandon()
        return set(server.broker.users)

    durable = Config(data_dir=str(tmp_path))
    assert users(Config(ephemeral=True)) == users(durable) == {"guest"}


@pytest.mark.parametrize("document", [{}, VHOST, {**VHOST, **USER}])
def test_with_definitions_there_is_none_whatever_they_say(document: dict[str, Any]) -> None:
    broker = started(document)
    assert broker.users.keys() == {user["name"] for user in document.get("users", ())}
    assert broker.vhosts.keys() == {vhost["name"] for vhost in document.get("vhosts", ())}


def test_definitions_that_leave_nobody_are_told_loudly(caplog: pytest.LogCaptureFixture) -> None:
    started(VHOST)
    assert [record.levelname for record in caplog.records if IGNORED in record.getMessage()] == ["WARNING"]


def test_definitions_with_other_users_tell_that_the_default_one_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    started(USER, default_user="me")
    assert "the default user 'me' is not created, as in RabbitMQ" in caplog.text
    caplog.clear()
    started(USER, default_user="u")
    assert "not created" not in caplog.text


def test_the_default_user_can_be_had_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    broker = started({**VHOST, **USER}, always_create_default_user=True)
    assert (broker.users.keys(), broker.vhosts.keys()) == ({"guest", "u"}, {"/", "v"})
    assert broker.users["guest"].can_open("/")
    assert "not created" not in caplog.text


def test_what_definitions_say_of_the_default_user_counts() -> None:
    broker = started({"users": [{"name": "guest", "password": "p", "tags": ""}]}, always_create_default_user=True)
    assert broker.users["guest"].accepts(b"p")


def test_a_default_user_that_is_there_stays_as_he_is() -> None:
    broker = Broker(Config(definitions="{}", always_create_default_user=True), os.urandom)
    user = broker.add_user("guest", "changed")
    load(broker, is_blank=False)
    assert broker.users == {"guest": user}


def test_a_folder_is_loaded_file_by_file_in_the_order_of_names(tmp_path: Path) -> None:
    for name, document in (("2.json", QUEUE), ("1.json", VHOST), ("3.txt", "no JSON")):
        (tmp_path / name).write_text(json.dumps(document))
    broker = started(definitions=str(tmp_path))
    assert broker.vhosts["v"].queues.keys() == {"q"}


def test_a_setting_may_be_json_itself() -> None:
    assert sources(' \n{"a": 1}') == [("definitions", {"a": 1})]


def test_what_cannot_be_read_is_told_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(DefinitionsUnreadable, match=f"{tmp_path}/none: No such file or directory"):
        sources(str(tmp_path / "none"))
    with pytest.raises(DefinitionsUnreadable, match="File name too long"):
        sources("x" * 5000)


def test_what_is_no_json_is_told_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(DefinitionsError, match=f"{tmp_path}/a.json: not JSON: Expecting property name"):
        sources(str(tmp_path))


def test_what_is_wrong_is_told_with_file_and_object(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(QUEUE))
    text = f"{tmp_path}/a.json: queue 'q' in vhost 'v': Please create virtual host \"v\" prior"
    with pytest.raises(DefinitionsError, match=text):
        started(definitions=str(tmp_path / "a.json"))


def test_a_document_of_one_vhost_is_none_to_start_with() -> None:
    with pytest.raises(DefinitionsError, match="Virtual host does not exist and is not specified in definitions file"):
        started({"queues": [{"name": "q"}]})


def test_many_things_that_are_passed_over_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    queues = [{"vhost": "v", "name": f"amq.{number}"} for number in range(NOTES_MAX + 5)]
    started({**VHOST, "queues": queues})
    told = [record.getMessage() for record in caplog.records]
    assert sum("Skipping import of a queue" in line for line in told) == NOTES_MAX
    assert "definitions: 5 more objects are passed over" in told
    assert "imported definitions from definitions: 1 objects" in told
    assert definitions.logger.name == "amqp_broker.server"
