"""Definitions go from our broker into a real RabbitMQ and back, and nothing is lost or changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.broker.broker import Broker
from amqp_broker.cli.definitions import call_api
from amqp_broker.cli.serve import CommandError
from amqp_broker.config import Config
from amqp_broker.management.definitions import export, import_
from amqp_broker.management.importing import DefinitionsError
from compat.brokers import EXCHANGE_PLUGINS, RabbitMQ
from compat.definitions.comparing import SECTIONS, comparable, comparable_vhost
from compat.definitions.sample import of_vhost, sample
from tests.cli.program import run

PLUGINS = ("rabbitmq_management", "rabbitmq_shovel", "rabbitmq_federation", *EXCHANGE_PLUGINS)

pytestmark = pytest.mark.skipif(not RabbitMQ.is_installed(), reason="there is no RabbitMQ")


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    broker = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), plugins=PLUGINS)
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def url(rabbitmq: RabbitMQ) -> str:
    return f"http://guest:guest@127.0.0.1:{rabbitmq.management_port}"


@pytest.fixture
def ours() -> Broker:
    broker = Broker(Config(), os.urandom)
    broker.add_defaults()
    return broker


def test_what_we_export_rabbitmq_imports_and_exports_again(ours: Broker, url: str) -> None:
    assert import_(ours, sample("whole"), actor="guest") == []
    exported = export(ours)
    call_api(url, None, {**exported, "vhosts": [{"name": vhost["name"]} for vhost in exported["vhosts"]]})
    assert comparable(call_api(url, None), "whole") == comparable(exported, "whole")


def test_what_rabbitmq_exports_we_import_and_export_again(ours: Broker, url: str) -> None:
    call_api(url, None, sample("back"))
    theirs = call_api(url, None)
    import_(ours, theirs)
    assert comparable(export(ours), "back") == comparable(theirs, "back")
    assert all(comparable(theirs, "back")[section] for section in SECTIONS)


def test_both_export_what_they_were_given(ours: Broker, url: str) -> None:
    given = sample("given")
    call_api(url, None, given)
    import_(ours, given, actor="guest")
    # Who imports a vhost that is new may do everything there.
    everything = {"user": "guest", "configure": ".*", "write": ".*", "read": ".*"}
    given["permissions"] += [{**everything, "vhost": vhost["name"]} for vhost in given["vhosts"]]
    wanted = comparable(given, "given")
    assert comparable(call_api(url, None), "given") == wanted
    assert comparable(export(ours), "given") == wanted


def test_the_definitions_of_one_vhost_go_there_and_back(ours: Broker, url: str) -> None:
    for name in ("one", "other"):
        call_api(url, None, {"vhosts": [{"name": name}]})
        ours.add_vhost(name)
    import_(ours, of_vhost(), "one")
    exported = export(ours, "one")
    call_api(url, "one", exported)
    theirs = call_api(url, "one")
    assert comparable_vhost(theirs) == comparable_vhost(exported) == comparable_vhost(of_vhost())
    import_(ours, theirs, "other")
    assert comparable_vhost(export(ours, "other")) == comparable_vhost(theirs)


def test_a_vhost_keeps_its_metadata_on_the_way_to_rabbitmq(ours: Broker, rabbitmq: RabbitMQ, url: str) -> None:
    vhost = {"name": "noted", "description": "é", "tags": ["a", "b"], "default_queue_type": "quorum"}
    import_(ours, {"vhosts": [vhost]})
    call_api(url, None, {"vhosts": [told for told in export(ours)["vhosts"] if told["name"] == "noted"]})
    assert told_of_vhost(rabbitmq, "noted") == vhost


def told_of_vhost(rabbitmq: RabbitMQ, name: str) -> Any:
    """What RabbitMQ says about a vhost: 3.10 does not export it."""
    columns = ("name", "description", "tags", "default_queue_type")
    done = rabbitmq.run("rabbitmqctl", "-q", "list_vhosts", *columns, "--formatter", "json")
    return next(vhost for vhost in json.loads(done.stdout) if vhost["name"] == name)


def test_the_command_line_exports_from_and_imports_into_a_broker_that_runs(url: str, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(sample("cli")))
    assert run("definitions", "import", str(file), "--url", url).stderr == ""
    done = run("definitions", "export", "--url", url, "--vhost", "cli/é")
    assert done.stderr == ""
    assert comparable_vhost(json.loads(done.stdout)) == comparable_vhost(of_vhost())


def test_what_rabbitmq_refuses_is_told_in_its_words(url: str) -> None:
    reason = r"answers 400: Validation failed\n\ncomponent foo not found\n \(//foo/x\)"
    with pytest.raises(DefinitionsError, match=reason):
        call_api(url, None, {"parameters": [{"vhost": "/", "component": "foo", "name": "x", "value": {}}]})
    with pytest.raises(DefinitionsError, match="answers 404: vhost_not_found"):
        call_api(url, "no such", {"queues": []})
    with pytest.raises(CommandError, match="refuses user 'guest'"):
        call_api(url.replace("guest:guest", "guest:wrong"), None)


REFUSED: list[dict[str, Any]] = [
    {"queues": [{"vhost": "/", "name": "q", "durable": True, "auto_delete": False, "arguments": {"x-expires": 0}}]},
    {"queues": [{"vhost": "none", "name": "q", "durable": True, "auto_delete": False, "arguments": {}}]},
    {"queues": [{"name": "q", "durable": True, "auto_delete": False, "arguments": {}}]},
    {"exchanges": [{"vhost": "/", "name": "e", "type": "foo", "durable": True, "auto_delete": False, "arguments": {}}]},
    {"permissions": [{"user": "none", "vhost": "/", "configure": "", "write": "", "read": ""}]},
    {"permissions": [{"user": "guest", "vhost": "none", "configure": "", "write": "", "read": ""}]},
    {"permissions": [{"user": "guest", "vhost": "/", "configure": "*", "write": "", "read": ""}]},
    {"users": [{"name": "u", "password": "p"}]},
    {"users": [{"name": "u", "tags": "", "password_hash": "!"}]},
    {"policies": [{"vhost": "/", "name": "p", "pattern": "a", "definition": {"foo": 1}}]},
    {"policies": [{"vhost": "/", "pattern": "a", "definition": {"expires": 1}}]},
    {"parameters": [{"vhost": "/", "component": "vhost-limits", "name": "limits", "value": {"foo": 1}}]},
    {"bindings": [{"vhost": "/", "source": "amq.direct", "destination": "q", "destination_type": "foo"}]},
]


@pytest.mark.parametrize("document", REFUSED, ids=lambda document: json.dumps(document)[:60])
def test_what_rabbitmq_refuses_we_refuse(ours: Broker, url: str, document: dict[str, Any]) -> None:
    with pytest.raises(DefinitionsError):
        call_api(url, None, document)
    with pytest.raises(DefinitionsError):
        import_(ours, document)


BINDING: dict[str, Any] = {"vhost": "/", "destination": "q", "destination_type": "queue", "routing_key": "q"}
IGNORED: list[dict[str, Any]] = [
    {},
    {"no such section": [1], "queues": []},
    {"exchanges": [{"vhost": "/", "name": "amq.mine", "type": "direct", "durable": True, "auto_delete": False}]},
    {"bindings": [{**BINDING, "source": "none"}, {**BINDING, "source": ""}]},
]


@pytest.mark.parametrize("document", IGNORED, ids=lambda document: json.dumps(document)[:60])
def test_what_rabbitmq_passes_over_we_pass_over(ours: Broker, url: str, document: dict[str, Any]) -> None:
    before = comparable(export(ours)), comparable(call_api(url, None), "/")
    call_api(url, None, document)
    import_(ours, document)
    assert (comparable(export(ours)), comparable(call_api(url, None), "/")) == before


def test_the_default_user_is_not_created_where_there_are_definitions_to_load(tmp_path: Path) -> None:
    """RabbitMQ's rule, whatever the definitions say; ours is tested in tests/server/test_definitions.py."""
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps({"vhosts": [{"name": "mine"}]}))
    broker = RabbitMQ(tmp_path / "rabbitmq", settings=(f"load_definitions = {file}",))
    broker.start()
    try:
        users = broker.run("rabbitmqctl", "-q", "list_users", "--no-table-headers").stdout
        vhosts = broker.run("rabbitmqctl", "-q", "list_vhosts", "--no-table-headers").stdout
    finally:
        broker.kill()
    assert (users.strip(), vhosts.strip()) == ("", "mine")
