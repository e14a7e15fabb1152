"""Downloads take the messages of a queue as they are, and leave them there."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from amqp_broker.broker.admin.access import Permission
from amqp_broker.management.api import download
from amqp_broker.management.documents.capture_file import Skipped, read
from tests.client import Client
from tests.running import RunningServer

GUEST = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
PATH = "/_broker/queues/%2F/q/download"


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with RunningServer(management=True, management_port=0) as running:
        yield running


def filled(server: RunningServer, *bodies: bytes, queue: str = "q", **arguments: Any) -> None:
    with Client(server.port).open() as client:
        client.declare(queue, durable=True, arguments=arguments)
        for body in bodies:
            client.publish(queue, body, headers={"n": 2**40})
        client.sync()


def asked(server: RunningServer, query: str = "", path: str = PATH) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server.ports["management"], timeout=20)
    connection.request("GET", path + query, headers=GUEST)
    answer = connection.getresponse()
    return answer, answer.read()


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_all_ready_messages_are_downloaded_as_json_and_stay(server: RunningServer, kind: str) -> None:
    bodies = [f"{number} teapots".encode() for number in range(150)]
    filled(server, *bodies, b"\xff", **{"x-queue-type": kind})
    answer, octets = asked(server)
    assert (answer.status, answer.getheader("Content-Type")) == (200, "application/json")
    assert answer.getheader("Content-Disposition") == "attachment; filename*=UTF-8''q.json"
    rows = json.loads(octets)
    assert [row["payload"] for row in rows] == [body.decode() for body in bodies] + ["/w=="]
    assert rows[0]["properties"]["headers"]["n"] == 2**40
    assert json.loads(asked(server)[1]) == rows


def test_a_capture_of_a_queue_is_read_as_any_other(server: RunningServer) -> None:
    filled(server, b"one", b"\xff")
    answer, octets = asked(server, "?format=capture")
    assert answer.getheader("Content-Type") == "application/x-ndjson"
    captured = [one for one in read(octets.splitlines(keepends=True)) if not isinstance(one, Skipped)]
    assert [(one.at_us, one.message.routing_key, one.message.body) for one in captured] == [
        (0, "q", b"one"),
        (0, "q", b"\xff"),
    ]
    assert captured[0].message.properties().headers == {"n": 2**40}


@pytest.mark.parametrize(("format_", "expected"), [("json", b"[]\n"), ("capture", b"")])
def test_an_empty_queue_is_an_empty_document(server: RunningServer, format_: str, expected: bytes) -> None:
    filled(server)
    octets = asked(server, f"?format={format_}")[1]
    assert octets.partition(b"}\n")[2] == expected if format_ == "capture" else octets == expected


def test_chosen_messages_are_downloaded(server: RunningServer) -> None:
    filled(server, b"one", b"two", b"three")
    rows = json.loads(asked(server)[1])
    chosen = ",".join(str(row["position"]) for row in rows[1:])
    assert [row["payload"] for row in json.loads(asked(server, f"?positions={chosen}")[1])] == ["two", "three"]


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_a_chosen_message_far_behind_others_is_downloaded(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(download, "BATCH", 2)
    filled(server, *[b"%d" % number for number in range(20)], **{"x-queue-type": kind})
    position = json.loads(asked(server)[1])[18]["position"]
    assert [row["payload"] for row in json.loads(asked(server, f"?positions={position},9999999")[1])] == ["18"]


def test_few_downloads_run_at_once(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(server, b"one")
    monkeypatch.setattr(download, "RUNNING_MAX", 0)
    answer, octets = asked(server)
    assert (answer.status, json.loads(octets)["reason"]) == (503, "0 downloads are running")


def test_a_download_that_takes_too_long_has_no_end(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(server, b"one")
    monkeypatch.setattr(download, "DURATION_S_MAX", -1.0)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        asked(server)
    server.until(lambda one: not download._running)


def test_large_messages_are_written_one_by_one(server: RunningServer) -> None:
    filled(server, *[b"x" * 300_000] * 3)
    assert [row["payload_bytes"] for row in json.loads(asked(server)[1])] == [300_000] * 3


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("?format=xml", "format must be json or capture"),
        ("?positions=a", "positions must be numbers, separated by commas"),
        ("?positions=1,,2", "positions must be numbers, separated by commas"),
        ("?positions=-1", "positions must be numbers, separated by commas"),
        ("?position=1", None),
    ],
)
def test_an_invalid_query_is_refused(server: RunningServer, query: str, reason: str | None) -> None:
    filled(server, b"one")
    answer, octets = asked(server, query)
    assert answer.status == 400
    assert reason is None or json.loads(octets)["reason"] == reason


def test_a_download_requires_a_queue_and_the_permission_to_read_it(server: RunningServer) -> None:
    filled(server, b"one")
    assert asked(server, path=PATH.replace("/q/", "/none/"))[0].status == 404
    users = server.ask(lambda one: one.broker.users)
    server.ask(lambda one: users.set_permission(users["guest"], "/", Permission(read="^$")))
    assert asked(server)[0].status == 401
