from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from amqp_broker.broker.scheduling.timers import LATEST_MS
from amqp_broker.cli.own.messages import line_of
from tests.cli.program import MODULE, Serving, environment, run, serving


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("broker"), "--event-log") as broker:
        with broker.client() as client:
            client.open()
            client.declare("orders")
            for number in range(3):
                client.publish("orders", b'{"id": %d}' % number)
            client.sync()
        yield broker


def test_events_are_listed_and_filtered(broker: Serving) -> None:
    node = ("--node", str(broker.port))
    done = run("messages", *node)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 3, "")
    assert "publish      message 1  (default)  key 'orders'  to orders  " in done.stdout
    done = run("messages", *node, "--body-json", '{"id": 2}', "--json")
    assert json.loads(done.stdout)["message_number"] == 3
    done = run("messages", *node, "--count", "4", "--timeout", "0.05")
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr.startswith("amqp-broker: 4 wanted, 3 found: event publish.\n")


def test_more_events_are_listed_than_one_answer_has(broker: Serving) -> None:
    with broker.client() as client:
        client.open()
        for _ in range(1000):
            client.publish("orders", b"more")
        client.sync()
    node = ("--node", str(broker.port))
    for limit, expected in ((), 1003), (("--limit", "1002"), 1002), (("--limit", "2", "--follow"), 2):
        numbers = [
            json.loads(line)["message_number"] for line in run("messages", *node, *limit, "--json").stdout.splitlines()
        ]
        assert numbers == list(range(1, expected + 1))


def test_all_events_of_a_message_are_shown(broker: Serving) -> None:
    done = run("message", "2", "--node", str(broker.port))
    assert (done.returncode, done.stdout.count("\n"), "message 2" in done.stdout) == (0, 1, True)
    done = run("message", "99", "--node", str(broker.port))
    assert (done.returncode, done.stderr) == (65, "amqp-broker: no message 99 in the event logs.\n")


def test_an_event_after_the_year_9999_is_shown() -> None:
    event = {"event": "ack", "time_us": (LATEST_MS + 1) * 1000 + 5, "message_number": 1, "exchange": "", "queue": "q"}
    assert line_of({**event, "routing_key": "q"}).startswith("00:00:00.000005  ack ")


def test_new_events_are_followed(broker: Serving) -> None:
    command = [*MODULE, "messages", "--node", str(broker.port), "--queue", "orders", "--follow", "--json"]
    following = subprocess.Popen(
        command, env=environment(PYTHONUNBUFFERED="1"), stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert following.stdout is not None
    try:
        assert [json.loads(following.stdout.readline())["message_number"] for _ in range(3)] == [1, 2, 3]
        with broker.client() as client:
            client.open()
            client.publish("orders", b"late")
            assert json.loads(following.stdout.readline())["payload"] == "late"
    finally:
        following.kill()
        following.wait()
        following.stdout.close()


def test_a_nack_says_so_on_its_line() -> None:
    event = {"time_us": 0, "event": "confirm", "message_number": 1, "exchange": "", "queue": None, "routing_key": "q"}
    assert line_of({**event, "ack": False, "redelivered": False}).endswith("ack=False")
    assert "redelivered" not in line_of({**event, "ack": False, "redelivered": False})
