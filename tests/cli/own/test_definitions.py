"""`definitions` as its users run it. Brokers that run are asked in compat/definitions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.store.environment import DATA_FILE
from compat.definitions.sample import sample
from compat.waiting import wait_until
from tests.cli.canned import canned
from tests.cli.program import run, serving
from tests.store.stores import fill

QUEUE = {"vhost": "/", "name": "new", "durable": True, "auto_delete": False, "arguments": {"x-max-length": 5}}


def write(folder: Path, document: Any, name: str = "definitions.json") -> str:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    return str(path)


@pytest.fixture
def store(tmp_path: Path) -> str:
    fill(tmp_path / "store")
    return str(tmp_path / "store")


def test_the_definitions_of_a_store_are_exported_and_the_store_stays_the_same(store: str) -> None:
    before = (Path(store) / DATA_FILE).read_bytes()
    done = run("definitions", "export", "--data-dir", store)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert {queue["name"] for queue in told["queues"]} == {"emptied", "plain", "priority", "quorum"}
    assert (Path(store) / DATA_FILE).read_bytes() == before


def test_one_vhost_is_exported_to_a_file(store: str, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    done = run("definitions", "export", "--data-dir", store, "--vhost", "/", str(file))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    told = json.loads(file.read_text("utf-8"))
    assert (told["original_vhost_name"], "users" in told, "vhost" in told["queues"][0]) == ("/", False, False)


def test_a_broker_finds_definitions_that_were_imported_into_its_store(store: str, tmp_path: Path) -> None:
    file = write(tmp_path, {"queues": [QUEUE]})
    done = run("definitions", "import", file, "--data-dir", store)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{file} is imported: 1 queue\nThe import took \d+\.\d s\.\n", done.stdout)
    with serving(tmp_path, "--data-dir", store, AMQP_BROKER_EPHEMERAL="false") as broker, broker.client() as client:
        client.open()
        assert client.declare("new", durable=True, arguments={"x-max-length": 5}).message_count == 0
        assert client.declare("plain", durable=True).message_count == 20


def test_invalid_definitions_create_no_store(tmp_path: Path) -> None:
    good = {"vhosts": [{"name": "/"}], "queues": [QUEUE]}
    bad = {**good, "queues": [{**QUEUE, "arguments": {"x-max-length": "no"}}]}
    store = tmp_path / "store"
    assert run("definitions", "import", write(tmp_path, bad), "--data-dir", str(store)).returncode == 65
    assert not store.exists()
    assert run("definitions", "import", write(tmp_path, good), "--data-dir", str(store)).returncode == 0
    assert store.exists()


def test_invalid_definitions_leave_a_store_unchanged(store: str, tmp_path: Path) -> None:
    before = json.loads(run("definitions", "export", "--data-dir", store).stdout)
    late = {"vhost": "/", "name": "late", "type": "x-delayed-message", "arguments": {"x-delayed-type": "none"}}
    file = write(tmp_path, {"exchanges": [{"vhost": "/", "name": "e", "type": "topic"}, late]})
    done = run("definitions", "import", file, "--data-dir", store)
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr.startswith(f"amqp-broker: {file}: ")
    assert "exchange 'late' in vhost '/'" in done.stderr
    assert json.loads(run("definitions", "export", "--data-dir", store).stdout) == before


def test_an_import_into_a_store_in_use_is_refused(tmp_path: Path) -> None:
    store, file = str(tmp_path / "store"), write(tmp_path, {})
    with serving(tmp_path, "--data-dir", store, AMQP_BROKER_EPHEMERAL="false"):
        done = run("definitions", "import", file, "--data-dir", store)
        assert (done.returncode, "is in use" in done.stderr) == (75, True)
        assert json.loads(run("definitions", "export", "--data-dir", store).stdout)["users"][0]["name"] == "guest"


def test_a_file_is_checked_without_a_broker(tmp_path: Path) -> None:
    file = write(tmp_path, sample("s"))
    done = run("definitions", "check", file)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        f"{file} can be imported: 4 users, 2 vhosts, 8 permissions, 16 exchanges, 1 topic permission"
    )


def test_a_check_shows_all_faults_of_all_files(tmp_path: Path) -> None:
    write(tmp_path, {"users": [{"name": "u"}], "queues": [{"vhost": "v", "name": "q"}]}, "1.json")
    policy = {"vhost": "v", "name": "p", "pattern": "^", "definition": {"ha-mode": "all"}}
    write(tmp_path, {"vhosts": [{"name": "v"}], "policies": [policy]}, "2.json")
    done = run("definitions", "check", str(tmp_path))
    assert (done.returncode, done.stdout) == (65, "")
    lines = done.stderr.splitlines()
    assert lines[:2] == [
        f"amqp-broker: {tmp_path / '1.json'}: user 'u' has no tags (tags_not_present).",
        f"amqp-broker: {tmp_path / '1.json'}: queue 'q' in vhost 'v': "
        'Please create virtual host "v" prior to importing definitions.',
    ]
    assert lines[2].startswith(f"amqp-broker: {tmp_path / '2.json'}: policy 'p' in vhost 'v': ")
    assert "leave out the keys ha-*" in lines[2]


@pytest.mark.parametrize("words", [["export"], ["import", "FILE"]])
@pytest.mark.parametrize("place", [["--node", "5672"], ["--url", "http://localhost"]])
def test_a_store_and_a_broker_exclude_each_other(words: list[str], place: list[str]) -> None:
    done = run("definitions", *words, "--data-dir", "store", *place)
    assert (done.returncode, done.stderr) == (64, f"amqp-broker: give either --data-dir or {place[0]}.\n")


def test_definitions_are_exported_from_and_imported_into_a_broker_near_by(tmp_path: Path) -> None:
    file, folder = write(tmp_path, {"queues": [QUEUE]}), str(tmp_path)
    with serving(tmp_path, AMQP_BROKER_RUNTIME_DIR=folder) as broker:
        done = run("definitions", "import", file, AMQP_BROKER_RUNTIME_DIR=folder)
        assert (done.returncode, done.stderr) == (0, "")
        done = run("definitions", "export", "--node", str(broker.port), AMQP_BROKER_RUNTIME_DIR=folder)
        assert [queue["name"] for queue in json.loads(done.stdout)["queues"]] == ["new"]
    done = run("definitions", "export", AMQP_BROKER_RUNTIME_DIR=folder)
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.endswith(" runs here; --url names one elsewhere.\n")


def test_definitions_of_one_vhost_are_checked(tmp_path: Path) -> None:
    file = write(tmp_path, {"queues": [{"name": "q"}, {"name": "amq.q"}]})
    refused = run("definitions", "check", file)
    assert refused.stderr.startswith(
        f"amqp-broker: {file}: queue 'q': Virtual host does not exist and is not specified in definitions file.\n"
    )
    done = run("definitions", "check", "--vhost", "any", file)
    assert done.stdout == f"{file} can be imported: 2 queues\n"
    assert done.stderr == f"{file}: Skipping import of a queue whose name begins with 'amq.', name: amq.q\n"


def test_objects_that_an_import_into_one_vhost_leaves_out_are_not_counted(tmp_path: Path) -> None:
    file = write(tmp_path, {"users": [{"name": "anna"}], "permissions": 5, "queues": [{"name": "q"}]})
    done = run("definitions", "check", "--vhost", "any", file)
    assert (done.stdout, done.stderr) == (f"{file} can be imported: 1 queue\n", "")


@pytest.mark.parametrize("words", [["export"], ["import", "FILE"]])
def test_an_empty_name_of_a_vhost_does_not_mean_all(tmp_path: Path, words: list[str]) -> None:
    file = write(tmp_path, {"users": [{"name": "anna", "tags": ""}]})
    with canned({"GET /api/definitions/": {"users": []}, "POST /api/definitions/": {}}) as api:
        url = f"http://guest:guest@127.0.0.1:{api.place.port}"
        done = run("definitions", *(file if word == "FILE" else word for word in words), "--url", url, "--vhost", "")
    assert (done.returncode, done.stdout, api.asked) == (65, "", [])
    assert "the name of the vhost is empty" in done.stderr


def test_no_name_and_a_folder_without_definitions_are_errors(tmp_path: Path) -> None:
    done = run("definitions", "check", "")
    assert (done.returncode, done.stderr) == (66, "amqp-broker: the name of the file is empty.\n")
    done = run("definitions", "check", str(tmp_path))
    assert (done.returncode, done.stderr) == (66, f"amqp-broker: {tmp_path}: there is no file *.json in this folder.\n")


@pytest.mark.parametrize("command", ["check", "import"])
@pytest.mark.parametrize(
    ("content", "code", "reason"),
    [
        ("{", 65, "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ([], 65, "definitions should be an object, actually were []"),
        ({"queues": 5}, 65, "queues should be an array, actually was 5"),
        (
            {"vhosts": [{"name": "v"}], "parameters": [{"vhost": "v", "component": "foo", "name": "x"}]},
            65,
            "Validation failed component foo not found (v/foo/x)",
        ),
        (None, 66, "No such file or directory"),
    ],
)
def test_an_error_is_reported_in_one_sentence(
    tmp_path: Path, store: str, command: str, content: Any, code: int, reason: str
) -> None:
    file = str(tmp_path / "none") if content is None else write(tmp_path, content)
    options = ("--data-dir", store) if command == "import" else ()
    done = run("definitions", command, file, *options)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"amqp-broker: {file}: {reason}.\n")


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("--url", "localhost:15672"), 69, "'localhost:15672' is not the address of an HTTP API"),
        (("--url", "http://127.0.0.1:1"), 69, "no HTTP API answers at 127.0.0.1:1: Connection refused."),
        (("--data-dir", "/nonexistent"), 66, "there is no store in '/nonexistent'"),
    ],
)
def test_a_broker_that_cannot_be_reached_is_reported(arguments: tuple[str, ...], code: int, reason: str) -> None:
    done = run("definitions", "export", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"amqp-broker: {reason}")


def test_an_unknown_vhost_and_a_file_that_cannot_be_written_are_reported(store: str, tmp_path: Path) -> None:
    done = run("definitions", "export", "--data-dir", store, "--vhost", "v")
    assert (done.returncode, done.stderr) == (65, "amqp-broker: Virtual host 'v' does not exist.\n")
    done = run("definitions", "export", "--data-dir", store, str(tmp_path / "no" / "file"))
    assert (done.returncode, "cannot write" in done.stderr) == (73, True)


def test_a_broker_does_not_start_with_invalid_definitions(tmp_path: Path) -> None:
    file = write(tmp_path, {"queues": [QUEUE]})
    done = run("serve", "--port", "0", "--definitions", file)
    assert done.returncode == 65
    assert done.stderr == (
        f"amqp-broker: {file}: queue 'new' in vhost '/': "
        'Please create virtual host "/" prior to importing definitions.\n'
    )


def test_the_default_user_is_created_only_on_request(tmp_path: Path) -> None:
    file = write(tmp_path, {"users": [{"name": "u", "password": "p", "tags": ""}], "vhosts": [{"name": "v"}]})
    variables = {"RABBITMQ_DEFAULT_USER": "me", "RABBITMQ_DEFAULT_PASS": "mine"}
    with serving(tmp_path, "--definitions", file, **variables) as broker:
        # The log is written by another thread.
        wait_until(lambda: "the default user 'me' is not created, as in RabbitMQ" in broker.output)
    (tmp_path / "ports.json").unlink()
    always = {"AMQP_BROKER_ALWAYS_CREATE_DEFAULT_USER": "1"}
    with serving(tmp_path, "--definitions", file, **variables, **always) as broker, broker.client() as client:
        client.open(user="me", password="mine")


@pytest.mark.parametrize("url", ["http://[::1", "http://localhost:abc", "ftp://x", "nonsense"])
def test_an_invalid_address_is_reported(url: str) -> None:
    done = run("definitions", "export", "--url", url)
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.startswith(f"amqp-broker: '{url}' is not the address of an HTTP API")
