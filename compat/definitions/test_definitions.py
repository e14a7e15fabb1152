"""amqp-broker and RabbitMQ read each other's exports of definitions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.broker.broker import Broker
from amqp_broker.cli.own.broker_client import address_of
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.own.definitions import call_api
from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.management.documents.exporting import export
from amqp_broker.management.documents.importing import import_
from amqp_broker.settings.settings import Settings
from compat.definitions.comparing import SECTIONS, comparable, comparable_vhost
from compat.definitions.playing import EXPORT, EXPORT_OF_VHOST, STEM, document_of
from compat.definitions.sample import of_vhost, sample
from compat.definitions.suite import DEFINITIONS
from compat.oracle.records import Seen, load
from compat.oracles.rabbitmq import RabbitMQ
from tests.cli.program import run


@pytest.fixture(scope="module")
def recorded() -> Seen:
    return load(DEFINITIONS)


@pytest.fixture
def amqp_broker() -> Broker:
    broker = Broker(Settings(compat="3.13"), os.urandom)
    broker.add_defaults()
    return broker


def test_rabbitmqs_export_survives_an_import_and_export(amqp_broker: Broker, recorded: Seen) -> None:
    theirs = document_of(recorded[EXPORT][0])
    import_(amqp_broker, theirs)
    assert comparable(export(amqp_broker), STEM) == comparable(theirs)
    assert all(comparable(theirs)[section] for section in SECTIONS)


def test_rabbitmqs_export_of_one_vhost_survives_an_import_and_export(amqp_broker: Broker, recorded: Seen) -> None:
    theirs = document_of(recorded[EXPORT_OF_VHOST][0])
    amqp_broker.add_vhost("other")
    import_(amqp_broker, theirs, "other")
    assert comparable_vhost(export(amqp_broker, "other")) == comparable_vhost(theirs)


# A running RabbitMQ, for importing exports and for the command line.


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    broker = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), plugins=DEFINITIONS.plugins)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def url(rabbitmq: RabbitMQ) -> str:
    return f"http://guest:guest@127.0.0.1:{rabbitmq.management_port}"


@pytest.mark.verify
def test_an_export_survives_an_import_and_export_by_rabbitmq(amqp_broker: Broker, url: str) -> None:
    assert import_(amqp_broker, sample("whole"), actor="guest") == []
    exported = export(amqp_broker)
    call_api(address_of(url), None, {**exported, "vhosts": [{"name": vhost["name"]} for vhost in exported["vhosts"]]})
    assert comparable(call_api(address_of(url), None), "whole") == comparable(exported, "whole")


@pytest.mark.verify
def test_an_export_of_one_vhost_survives_an_import_and_export_by_rabbitmq(amqp_broker: Broker, url: str) -> None:
    call_api(address_of(url), None, {"vhosts": [{"name": "one"}]})
    amqp_broker.add_vhost("one")
    import_(amqp_broker, of_vhost(), "one")
    exported = export(amqp_broker, "one")
    call_api(address_of(url), "one", exported)
    assert comparable_vhost(call_api(address_of(url), "one")) == comparable_vhost(exported)


@pytest.mark.verify
def test_the_metadata_of_a_vhost_reaches_rabbitmq(amqp_broker: Broker, rabbitmq: RabbitMQ, url: str) -> None:
    vhost = {"name": "noted", "description": "é", "tags": ["a", "b"], "default_queue_type": "quorum"}
    import_(amqp_broker, {"vhosts": [vhost]})
    call_api(
        address_of(url), None, {"vhosts": [told for told in export(amqp_broker)["vhosts"] if told["name"] == "noted"]}
    )
    assert told_of_vhost(rabbitmq, "noted") == vhost


def told_of_vhost(rabbitmq: RabbitMQ, name: str) -> Any:
    """Return RabbitMQ's metadata of a vhost, which 3.10 does not export."""
    columns = ("name", "description", "tags", "default_queue_type")
    done = rabbitmq.run("rabbitmqctl", "-q", "list_vhosts", *columns, "--formatter", "json")
    return next(vhost for vhost in json.loads(done.stdout) if vhost["name"] == name)


@pytest.mark.verify
def test_the_command_line_exports_from_and_imports_into_a_running_broker(url: str, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(sample("cli")), "utf-8")
    assert run("definitions", "import", str(file), "--url", url).stderr == ""
    done = run("definitions", "export", "--url", url, "--vhost", "cli/é")
    assert done.stderr == ""
    assert comparable_vhost(json.loads(done.stdout)) == comparable_vhost(of_vhost())


@pytest.mark.verify
def test_rabbitmqs_refusals_are_printed_in_its_words(url: str) -> None:
    reason = r"answers 400: Validation failed\n\ncomponent foo not found\n \(//foo/x\)"
    with pytest.raises(DefinitionsError, match=reason):
        call_api(address_of(url), None, {"parameters": [{"vhost": "/", "component": "foo", "name": "x", "value": {}}]})
    with pytest.raises(DefinitionsError, match="answers 404: vhost_not_found"):
        call_api(address_of(url), "no such", {"queues": []})
    with pytest.raises(CommandError, match="refuses user 'guest'"):
        call_api(address_of(url.replace("guest:guest", "guest:wrong")), None)


@pytest.mark.verify
def test_the_default_user_is_not_created_if_there_are_definitions(tmp_path: Path) -> None:
    """RabbitMQ's rule; tests/server/test_startup_definitions.py tests amqp-broker's."""
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({"vhosts": [{"name": "mine"}]}), "utf-8")
    broker = RabbitMQ(tmp_path / "rabbitmq", settings=(f"load_definitions = {file}",))
    broker.start()
    try:
        users = broker.run("rabbitmqctl", "-q", "list_users", "--no-table-headers").stdout
        vhosts = broker.run("rabbitmqctl", "-q", "list_vhosts", "--no-table-headers").stdout
    finally:
        broker.kill()
    assert (users.strip(), vhosts.strip()) == ("", "mine")
