from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.canned import canned


def test_definitions_are_exported_to_and_imported_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "definitions.json"
    with canned({"GET /api/definitions": {"users": [], "a": "ü"}, "POST /api/definitions": 204}) as api:
        assert api.run(f"rabbitmqctl export_definitions {path}").exit_code == 0
        assert path.read_text("utf-8") == '{"a":"ü","users":[]}'
        assert api.run("rabbitmqctl export_definitions -").output == path.read_text("utf-8")
        assert api.run(f"rabbitmqctl import_definitions {path}").exit_code == 0
        assert api.changes() == [("POST /api/definitions", {"a": "ü", "users": []})]


CONNECTIONS = [
    {"name": "a -> b", "user": "guest", "vhost": "/"},
    {"name": "c -> d", "user": "alice", "vhost": "/"},
    {"name": "e -> f", "user": "alice", "vhost": "v"},
]


@pytest.mark.parametrize(
    ("line", "closed"),
    [
        ("close_all_connections bye", ["a", "c"]),
        ("close_all_connections -p v bye", ["e"]),
        ("close_all_connections --global bye", ["a", "c", "e"]),
        ("close_all_connections --global --limit 1 bye", ["a"]),
        ("close_all_user_connections alice bye", ["c", "e"]),
        ("close_connection 'c -> d' bye", ["c"]),
    ],
)
def test_connections_are_closed_with_a_reason(line: str, closed: list[str]) -> None:
    with canned({"GET /api/connections": CONNECTIONS}) as api:
        assert api.run(f"rabbitmqctl {line}").exit_code == 0
        assert [request[len("DELETE /api/connections/")] for request, _ in api.changes()] == closed
        assert api.headers[-1]["X-Reason"] == "bye"


def test_a_connection_is_closed_by_the_pid_that_lists_show() -> None:
    with canned({"GET /api/connections": CONNECTIONS}) as api:
        pid = api.run("rabbitmqctl -s list_connections pid").output.splitlines()[1]
        assert api.run(f"rabbitmqctl close_connection '{pid}' bye").exit_code == 0
        assert api.changes() == [("DELETE /api/connections/c%20-%3E%20d", None)]
        assert api.run("rabbitmqctl close_connection '<x.1.2.3>' bye").exit_code == 69


def test_a_queue_is_deleted_on_conditions() -> None:
    target = "/api/queues/%2F/q"
    answers = {
        f"GET {target}": {"messages": 3},
        f"DELETE {target}": 204,
        f"DELETE {target}?if-empty=true": (400, {"reason": "queue 'q' in vhost '/' not empty"}),
    }
    with canned(answers) as api:
        done = api.run("rabbitmqctl delete_queue q --if-empty")
        assert done.output == "Deleting queue 'q' on vhost '/' if queue is empty ...\n"
        assert (done.complaint, done.exit_code) == ("Error:\nQueue is not empty\n", 64)
        assert api.run("rabbitmqctl -q delete_queue q").output == (
            "Queue was successfully deleted with 3 ready messages\n"
        )
        assert api.run("rabbitmqctl delete_queue other").complaint == "Error:\nNo such queue was found\n"
        api.version = "4.0.5"
        assert api.run("rabbitmqctl delete_queue other").complaint == "Error:\nQueue not found\n"


def test_a_missing_queue_cannot_be_purged() -> None:
    with canned({"GET /api/vhosts/%2F": {}}) as api:
        done = api.run("rabbitmqctl -q purge_queue none")
        assert done == ("", "Object (queue, stream, exchange, etc) was not found\n", 65)
        api.version = "3.13.7"
        assert api.run("rabbitmqctl -q purge_queue none") == ("", "Error:\nnot_found\n", 69)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("not json", '{:unexpected_byte, "0x6E", 0}'), ("[1", ":unexpected_end"), ("[" * 100_000, ":too_deep")],
)
def test_definitions_that_are_no_json_are_not_sent(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "definitions.json"
    path.write_text(text, "utf-8")
    with canned() as api:
        done = api.run(f"rabbitmqctl -q import_definitions {path}")
        assert done == ("", f"Error:\nFailed to deserialise input (format: JSON) (error: {reason})\n", 65)
        assert api.changes() == []


def test_eval_supports_a_few_expressions() -> None:
    with canned() as api:
        assert api.run("rabbitmqctl eval 'node().'").output == "rabbit@test\n"
        done = api.run("rabbitmqctl eval 'erlang:halt().'")
    assert done.exit_code == 69
    assert "has no Erlang" in done.complaint
