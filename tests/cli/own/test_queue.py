from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pamqp import commands

from amqp_broker.cli.own.queue import line_of
from amqp_broker.management.documents.capture_file import Skipped, read
from tests.cli.program import Serving, run, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("broker"), "--management-port", "0") as broker:
        yield broker


@pytest.fixture
def broker(served: Serving) -> Serving:
    """A broker with three dead letters of the queue `work` in `dead`."""
    with served.client() as client:
        client.open()
        for name in ("dead", "work", "other"):
            client.send(commands.Queue.Delete(queue=name))
            client.expect(commands.Queue.DeleteOk)
        client.declare("dead")
        client.declare("other")
        client.declare("work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
        for body in (b"1 teapot", b"2 teapots", b"3 teapots"):
            client.publish("work", body)
            client.send(commands.Basic.Get(queue="work"))
            client.expect(commands.Basic.GetOk)
            client.expect_body()
        client.send(commands.Basic.Nack(0, multiple=True, requeue=False))
        client.sync()
    return served


def queue(broker: Serving, *words: str) -> tuple[int, str, str]:
    done = run("queue", *words, "--node", str(broker.port))
    return done.returncode, done.stdout, done.stderr


def bodies(broker: Serving, name: str) -> list[str]:
    return [json.loads(line)["payload"] for line in queue(broker, "peek", name, "--json")[1].splitlines()]


def test_messages_are_shown_with_their_positions_and_where_they_died(broker: Serving) -> None:
    code, shown, _ = queue(broker, "peek", "dead", "--search", "2 tea")
    assert (code, shown.split()) == (
        0,
        ["1", "9", "B", "key", "dead", "2", "teapots", "died", "in", "work", "(rejected)"],
    )
    assert queue(broker, "peek", "dead", "--state", "unacked") == (0, "", "")
    assert [
        line.split()[0] for line in queue(broker, "peek", "dead", "--offset", "1", "--count", "1")[1].splitlines()
    ] == ["1"]


def test_all_dead_letters_return(broker: Serving) -> None:
    assert queue(broker, "return", "dead") == (0, "3 messages returned; 0 ready\n", "")
    assert bodies(broker, "work") == ["1 teapot", "2 teapots", "3 teapots"]


def test_chosen_dead_letters_return(broker: Serving) -> None:
    assert queue(broker, "return", "dead", "--position", "1") == (0, "1 message returned; 2 ready\n", "")
    assert (bodies(broker, "work"), bodies(broker, "dead")) == (["2 teapots"], ["1 teapot", "3 teapots"])
    code, shown, problem = queue(broker, "return", "dead", "--position", "1", "--position", "2")
    assert (code, shown) == (65, "1 message returned; 1 ready\n")
    assert problem == "amqp-broker: not ready here any more, or too far behind others: 1 of the chosen.\n"


def test_messages_are_moved(broker: Serving) -> None:
    assert queue(broker, "move", "dead", "other", "--count", "2") == (0, "2 messages moved; 1 ready\n", "")
    assert queue(broker, "move", "dead", "other") == (0, "1 message moved; 0 ready\n", "")
    assert bodies(broker, "other") == ["1 teapot", "2 teapots", "3 teapots"]


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("peek", "none"), 65, "no queue 'none' in vhost '/'"),
        (("return", "dead", "--vhost", "none"), 65, "Not Found"),
        (("move", "dead", "dead"), 65, "destination must be another queue"),
        (("move", "dead", "none"), 65, "no queue 'none' in vhost '/'"),
        (("move", "dead", "other", "--count", "1", "--position", "1"), 64, "give --count or --position, not both"),
        (("return", "dead", "--position", "x"), 64, "'x' is not a valid integer"),
        (("download", "none", "file"), 65, "no queue 'none' in vhost '/'"),
    ],
)
def test_a_refusal_is_a_sentence(broker: Serving, words: tuple[str, ...], code: int, problem: str) -> None:
    found = queue(broker, *words)
    assert found[0] == code
    assert problem in found[2]
    assert not Path("file").exists()


def test_messages_are_downloaded_as_json(broker: Serving, tmp_path: Path) -> None:
    file = tmp_path / "dead.json"
    code, shown, note = queue(broker, "download", "dead", str(file))
    assert (code, shown, note) == (0, "", f"{file.stat().st_size} octets written to {file}\n")
    assert [row["payload"] for row in json.loads(file.read_text("utf-8"))] == ["1 teapot", "2 teapots", "3 teapots"]
    assert queue(broker, "download", "dead", str(file))[::2] == (73, f"amqp-broker: '{file}' already exists.\n")
    assert queue(broker, "download", "dead", str(tmp_path / "none" / "file"))[0] == 73
    assert len(bodies(broker, "dead")) == 3


def test_chosen_messages_are_downloaded_to_stdout(broker: Serving) -> None:
    code, shown, _ = queue(broker, "download", "dead", "-", "--position", "0", "--position", "2")
    assert (code, [row["payload"] for row in json.loads(shown)]) == (0, ["1 teapot", "3 teapots"])


def test_messages_are_downloaded_as_a_capture(broker: Serving, tmp_path: Path) -> None:
    file = tmp_path / "dead.jsonl"
    assert queue(broker, "download", "dead", str(file), "--format", "capture")[0] == 0
    with file.open("rb") as lines:
        assert [one.message.body for one in read(lines) if not isinstance(one, Skipped)] == [
            b"1 teapot",
            b"2 teapots",
            b"3 teapots",
        ]


@pytest.mark.parametrize("deaths", [5, [], [5], [{}]])
def test_a_message_with_an_odd_history_is_one_line(deaths: object) -> None:
    message = {
        "payload": "a\nb" * 100,
        "payload_bytes": 300,
        "routing_key": "k\x07",
        "properties": {"headers": {"x-death": deaths}},
        "connection": "c",
        "channel": 1,
    }
    line = line_of(message)
    assert line.isprintable()
    assert "key 'k\\x07'" in line
    assert line.endswith("held by c (1)")


@pytest.mark.parametrize("word", ["list", "show"])
def test_an_unknown_command_leads_to_the_list_of_queues(word: str) -> None:
    done = run("queue", word)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr == (
        f"amqp-broker: No such command '{word}'. For a list of queues:\n"
        "  amqp-broker ctl list_queues name messages consumers\n"
    )
