from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path

import pika
import pytest
from pamqp import commands

from amqp_broker.cli.own.store import EXIT_CODES, shown
from amqp_broker.store import pages
from amqp_broker.store.environment import DATA_FILE, TABLES, Environment, StoreError, StoreUnusable
from tests.cli.program import MODULE, Serving, run, serving, serving_as
from tests.store.stores import PAGE_BYTES, digest, fill, put

DURABLE = {"AMQP_BROKER_EPHEMERAL": "false"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    fill(folder)
    return folder


def store(command: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run("store", command, "--data-dir", str(folder), *options)


def assert_refused(done: subprocess.CompletedProcess[str], code: int, sentence: str) -> None:
    """One sentence on stderr, and nothing else anywhere."""
    assert (done.stdout, done.stderr, done.returncode) == ("", f"amqp-broker: {sentence}.\n", code)


# Success


def test_info_shows_the_contents_of_a_store(folder: Path) -> None:
    done = store("info", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(
        rf"{folder}: format 2, \d+\.\d KiB on disk, \d+ of \d+ pages free\nvhosts: /\nusers: guest\n", done.stdout
    )
    assert "\n  plain in vhost / (classic): 20 messages, 8.2 KiB\n" in done.stdout
    assert done.stdout.endswith("\nto be deleted: nothing\n")


def test_the_folder_is_an_argument_too(folder: Path) -> None:
    done = run("store", "info", str(folder))
    assert (done.returncode, done.stdout) == (0, store("info", folder).stdout)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("",), "the name of the folder is empty"),
        (("--data-dir", ""), "the name of the folder is empty"),
        (("copy", "--data-dir", "data"), "give the folder once, as DIR or with --data-dir"),
    ],
)
def test_an_empty_folder_or_two_are_refused(words: tuple[str, ...], sentence: str) -> None:
    done = run("store", "compact", *words)
    assert (done.returncode, done.stdout) == (64, "")
    assert sentence in done.stderr


def test_info_as_json_has_the_same_contents(folder: Path) -> None:
    told = json.loads(store("info", folder, "--json").stdout)
    assert (told["format"], told["vhosts"], told["users"], told["garbage"]) == (2, ["/"], ["guest"], 0)
    assert told["queues"][1] == {"vhost": "/", "name": "plain", "type": "classic", "messages": 20, "bytes": 8400}


def test_verify_reports_the_problems_of_a_store(folder: Path) -> None:
    done = store("verify", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        rf"{folder} has no problems: \d+ pages, 4 queues, 70 messages checked in \d+\.\d s\n", done.stdout
    )
    environment = Environment(folder)
    with environment.lmdb.begin(write=True) as txn:
        put(txn, b"user:x", b"octets", environment.tables["definitions"])
    environment.close()
    done = store("verify", folder)
    assert done.returncode == os.EX_DATAERR
    assert done.stdout == "a definition (b'user') cannot be read.\n"
    assert done.stderr.startswith(f"amqp-broker: '{folder}' has 1 problems; ")


def test_repair_reports_what_it_drops(folder: Path) -> None:
    done = store("repair", folder)
    assert done.returncode == 0
    assert re.fullmatch(rf"{folder} has nothing to repair; checked in \d+\.\d s\n", done.stdout)
    environment = Environment(folder)
    with environment.lmdb.begin(write=True) as txn:
        txn.put(b"user:x", b"octets", db=environment.tables["definitions"])
    environment.close()
    done = store("repair", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(
        r"a definition \(user\) cannot be read and is dropped\.\n"
        rf"{folder}/damaged-\w+\.jsonl has copies of what was damaged or dropped\n"
        rf"{folder} was repaired; checked in \d+\.\d s\n",
        done.stdout,
    )
    assert store("verify", folder).returncode == 0


def test_compact_shows_the_sizes_before_and_after(folder: Path) -> None:
    done = store("compact", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{folder}: \S+ KiB compacted to \S+ KiB in \d+\.\d s\n", done.stdout)
    assert store("verify", folder).returncode == 0


def test_the_folder_is_that_of_serve(folder: Path) -> None:
    done = run("store", "info", "--json", AMQP_BROKER_DATA_DIR=str(folder))
    assert json.loads(done.stdout)["folder"] == str(folder)


# A broker that runs


def publish(broker: Serving, confirmed: list[int], is_over: threading.Event) -> None:
    """Publish numbers with confirms; `confirmed` has those that were."""
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("numbers", durable=True)
    number = 0
    while not is_over.is_set():
        channel.basic_publish("", "numbers", b"%d" % number, pika.BasicProperties(delivery_mode=2))
        confirmed.append(number)
        number += 1
    connection.close()


def numbers_in(broker: Serving) -> list[int]:
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port))
    channel, found = connection.channel(), []
    while (got := channel.basic_get("numbers", auto_ack=True))[0] is not None:
        found.append(int(got[2]))
    connection.close()
    return found


def test_a_backup_of_a_running_broker_has_all_messages_confirmed_before_it(tmp_path: Path) -> None:
    folder, is_over = tmp_path / "store", threading.Event()
    confirmed: list[int] = []
    before: dict[Path, int] = {}
    with serving(tmp_path, "--data-dir", str(folder), **DURABLE) as broker:
        publisher = threading.Thread(target=publish, args=(broker, confirmed, is_over))
        publisher.start()
        for name in ("first", "second", "third"):
            count = len(confirmed)
            while len(confirmed) < count + 100:
                time.sleep(0.01)
            before[tmp_path / name] = len(confirmed)
            done = store("backup", folder, "--to", str(tmp_path / name))
            assert (done.returncode, done.stderr) == (0, "")
            assert re.fullmatch(rf"{tmp_path / name}: copied \S+ [KM]iB in \d+\.\d s\n", done.stdout)
        is_over.set()
        publisher.join()
        told = json.loads(store("info", folder, "--json").stdout)
        assert told["queues"][0]["messages"] == len(confirmed)
        assert broker.end() == 0
    assert store("verify", folder).returncode == 0
    for copy, count in before.items():
        assert store("verify", copy).returncode == 0
        (copy.parent / "ports.json").unlink(missing_ok=True)
        with serving(tmp_path, "--data-dir", str(copy), **DURABLE) as broker:
            found = numbers_in(broker)
        assert found == list(range(len(found)))
        assert count <= len(found) <= len(confirmed)


def test_a_store_in_use_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with serving_as(MODULE, tmp_path, "--data-dir", str(folder), **DURABLE) as broker:
        sentence = (
            f"'{folder}' is in use by process {broker.process.pid}; end that, or give another folder with --data-dir"
        )
        # The broker's first commit may still be on its way; what is declared now is behind it.
        broker.client().open().declare("q", durable=True)
        before = digest(folder)
        for command in ("verify", "compact"):
            assert_refused(store(command, folder), os.EX_TEMPFAIL, sentence)
        second = run("serve", "--port", "0", "--data-dir", str(folder), **DURABLE)
        reason, command = second.stderr.splitlines()
        held = sentence.partition(";")[0]
        assert (second.returncode, reason) == (os.EX_TEMPFAIL, f"amqp-broker: {held}. A second broker starts with:")
        assert command == f"  amqp-broker serve --port 0 --data-dir {folder}-2"
        assert digest(folder) == before


# Errors


@pytest.mark.parametrize("command", ["info", "verify", "compact", "backup"])
def test_a_missing_store_is_an_error(tmp_path: Path, command: str) -> None:
    options = ("--to", str(tmp_path / "backup")) if command == "backup" else ()
    assert_refused(
        store(command, tmp_path / "none", *options),
        os.EX_NOINPUT,
        f"there is no store in '{tmp_path / 'none'}'; name the folder of one with --data-dir",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_given_as_an_argument_is_not_called_an_option(tmp_path: Path) -> None:
    reason = f"there is no store in '{tmp_path / 'none'}'; name the folder of one"
    assert_refused(run("store", "info", str(tmp_path / "none")), os.EX_NOINPUT, reason)


def test_a_backup_to_a_folder_that_is_not_empty_is_refused(folder: Path) -> None:
    before = digest(folder)[str(folder / DATA_FILE)]
    assert_refused(
        store("backup", folder, "--to", str(folder)),
        os.EX_CANTCREAT,
        f"'{folder}' is not empty; name a new folder for the backup with --to",
    )
    assert digest(folder)[str(folder / DATA_FILE)] == before


def test_serve_refuses_a_damaged_store_and_leaves_it_unchanged(folder: Path) -> None:
    (folder / DATA_FILE).write_bytes((folder / DATA_FILE).read_bytes()[:8192])
    before = digest(folder)
    done = run("serve", "--port", "0", "--data-dir", str(folder), **DURABLE)
    assert done.returncode == os.EX_DATAERR
    assert re.fullmatch(
        rf"amqp-broker: '{folder}/data.mdb' is damaged: .*; "
        r"put a backup in its place, or run `store repair` to save what can be read\.\n",
        done.stderr,
    )
    assert digest(folder) == before


@pytest.mark.verify
def test_a_broker_that_meets_a_damaged_page_says_so_and_ends(tmp_path: Path, folder: Path) -> None:
    with serving(tmp_path, "--data-dir", str(folder), **DURABLE) as broker:
        root = pages.survey(folder / DATA_FILE, TABLES, ()).tables["messages"].root
        with (folder / DATA_FILE).open("r+b") as file:
            file.seek(root * PAGE_BYTES)
            file.write(bytes(PAGE_BYTES))
        with broker.client().open() as client:
            client.send(commands.Basic.Get(queue="plain"))
            client.expect(commands.Connection.Close, channel=0)
        assert broker.process.wait(20) == os.EX_DATAERR
    assert f"the store in '{folder}' is damaged: " in broker.output
    assert "Traceback" not in broker.output


def test_serve_suggests_a_remedy_for_definitions_that_it_cannot_declare(folder: Path) -> None:
    environment = Environment(folder)
    with environment.lmdb.begin(write=True) as txn:
        put(txn, b"user:x", b"octets", environment.tables["definitions"])
    environment.close()
    done = run("serve", "--port", "0", "--data-dir", str(folder), **DURABLE)
    assert done.returncode == os.EX_DATAERR
    assert "run `store verify` to list its problems" in done.stderr
    assert "Traceback" not in done.stderr


def test_serve_creates_parents_only_for_the_platforms_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with serving(tmp_path, HOME=str(home), XDG_DATA_HOME="", **DURABLE) as broker:
        broker.client().open()
    assert [path.name for path in home.rglob(DATA_FILE)] == [DATA_FILE]
    done = run("serve", "--port", "0", "--data-dir", str(tmp_path / "a" / "b"), **DURABLE)
    assert_refused(
        done, os.EX_CANTCREAT, f"'{tmp_path / 'a'}' is no folder; make it one, or give another folder with --data-dir"
    )


def test_every_reason_has_an_exit_code() -> None:
    assert {*EXIT_CODES} == {*StoreError.__subclasses__(), *StoreUnusable.__subclasses__()}


# Output


@pytest.mark.parametrize(
    ("octets", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB"), (1 << 50, "1024.0 TiB")],
)
def test_sizes_are_shown_in_units(octets: int, text: str) -> None:
    assert shown(octets) == text
