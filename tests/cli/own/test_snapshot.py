from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from click.testing import CliRunner, Result

from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.own.snapshot import snapshot
from tests.cli.canned import canned
from tests.running import RunningServer


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    for name in ("RABBITMQ_NODENAME", "RABBITMQ_NODE_PORT", "AMQP_BROKER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AMQP_BROKER_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.chdir(tmp_path)
    with RunningServer(control=True) as running:
        yield running


def call(*arguments: str) -> Result:
    return CliRunner().invoke(snapshot, arguments)


def refusal(*arguments: str) -> tuple[int, str]:
    """Return the exit code and the sentence of a command that is refused."""
    error = call(*arguments).exception
    assert isinstance(error, CommandError)
    return error.exit_code, str(error)


def fill(broker: RunningServer, *bodies: bytes) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("orders", durable=True)
        for body in bodies:
            channel.basic_publish("", "orders", body)


def bodies(broker: RunningServer) -> list[bytes]:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port)) as connection:
        channel = connection.channel()
        return [body for _, _, body in iter(lambda: channel.basic_get("orders", auto_ack=True), (None, None, None))]


def test_a_snapshot_is_saved_listed_and_loaded(broker: RunningServer) -> None:
    fill(broker, b"1", b"2")
    line = "full: vhost '/', queues=1 messages=2\n"
    assert call("save", "full").output == line
    assert call("list").output == line
    assert json.loads(call("list", "--json").output) == [{"name": "full", "vhost": "/", "queues": 1, "messages": 2}]
    assert bodies(broker) == [b"1", b"2"]
    code, sentence = refusal("load", "full")
    assert (code, sentence) == (65, "vhost '/' is not empty; --clear deletes its contents first")
    assert call("load", "full", "--clear").output == line
    assert bodies(broker) == [b"1", b"2"]


def test_merged_snapshots_are_loaded_as_one(broker: RunningServer) -> None:
    fill(broker, b"1")
    call("save", "one")
    fill(broker, b"2")
    call("save", "two")
    assert call("merge", "two", "one", "--into", "both").output == "both: vhost '/', queues=1 messages=3\n"
    call("load", "both", "--clear")
    assert bodies(broker) == [b"1", b"2", b"1"]


def test_a_snapshot_is_replaced_only_if_that_is_asked_for(broker: RunningServer) -> None:
    call("save", "one")
    assert refusal("save", "one") == (73, "there is a snapshot 'one' in snapshots already; --force replaces it")
    assert refusal("merge", "one", "--into", "one")[0] == 73
    fill(broker, b"1")
    assert call("save", "one", "--force").output == "one: vhost '/', queues=1 messages=1\n"


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "a b"])
def test_a_name_that_is_none_of_a_file_is_refused(broker: RunningServer, name: str) -> None:
    assert refusal("save", name) == (64, f"'{name}' is no name of a snapshot: letters, digits, '.', '_' and '-' are")


@pytest.mark.parametrize(
    ("content", "code", "reason"),
    [
        (None, 66, "there is no snapshot 'x' in snapshots"),
        ("{", 65, "this is not JSON"),
        ("[" * 100_000, 65, "this is not JSON"),
        ('{"format": 1}', 65, "this is not a snapshot"),
        ('{"format": 2, "definitions": {}, "queues": [], "streams": [], "exchanges": []}', 65, "has format 2"),
    ],
)
def test_a_file_that_is_no_snapshot_is_refused_with_a_reason(
    broker: RunningServer, content: str | None, code: int, reason: str
) -> None:
    fill(broker, b"1")
    if content is not None:
        Path("snapshots").mkdir()
        Path("snapshots/x.json").write_text(content, "utf-8")
    found, sentence = refusal("load", "x", "--clear")
    assert (found, reason in sentence) == (code, True), sentence
    assert bodies(broker) == [b"1"]


def test_an_answer_that_is_no_snapshot_is_refused(tmp_path: Path) -> None:
    with canned({"GET /_broker/snapshot/%2F": {"format": 1}}) as api:
        url = f"http://guest:guest@127.0.0.1:{api.place.port}"
        code, sentence = refusal("save", "x", "--url", url, "--folder", str(tmp_path))
    assert (code, sentence.startswith("the answer of the broker: this is not a snapshot")) == (65, True), sentence
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(broker: RunningServer) -> None:
    Path("snapshots").write_text("", "utf-8")
    code, sentence = refusal("save", "one")
    assert (code, sentence.startswith("snapshots/one.json cannot be written: ")) == (73, True), sentence


def test_files_with_other_names_are_not_listed(broker: RunningServer) -> None:
    call("save", "one")
    for name in (".hidden.json", "a b.json", "notes.txt"):
        Path("snapshots", name).write_text("{", "utf-8")
    assert call("list").output == "one: vhost '/', queues=0 messages=0\n"


def test_no_snapshots_are_an_empty_list(broker: RunningServer) -> None:
    assert (call("list").output, json.loads(call("list", "--json").output)) == ("", [])
