"""Commands for the node, at a real broker where its control socket has all they need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from compat.waiting import wait_until
from tests.cli.canned import canned, run_without_node
from tests.cli.program import Serving, run, serving


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path, "--node-name", "one@localhost", AMQP_BROKER_RUNTIME_DIR=str(tmp_path)) as found:
        yield found


def ctl(broker: Serving, *words: str) -> tuple[str, str, int]:
    folder = str(Path(broker.ports_file).parent)
    done = run("ctl", *words, AMQP_BROKER_RUNTIME_DIR=folder, RABBITMQ_NODE_PORT=str(broker.port))
    return done.stdout, done.stderr, done.returncode


def connect(broker: Serving, **parameters: object) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", broker.port, **parameters))


def test_the_memory_watermark_blocks_publishers_and_lets_them_go_on(broker: Serving) -> None:
    connection = connect(broker)
    told: list[str] = []
    connection.add_on_connection_blocked_callback(lambda *_: told.append("blocked"))
    connection.add_on_connection_unblocked_callback(lambda *_: told.append("unblocked"))
    channel = connection.channel()

    def hears(*expected: str) -> bool:
        connection.process_data_events(0.01)
        return told == list(expected)

    assert ctl(broker, "set_vm_memory_high_watermark", "0")[2] == 0
    channel.basic_publish("", "nowhere", b"")
    wait_until(lambda: hears("blocked"))
    assert ctl(broker, "set_vm_memory_high_watermark", "0.4")[2] == 0
    wait_until(lambda: hears("blocked", "unblocked"))
    connection.close()


def test_a_stopped_app_takes_no_clients_until_it_is_started_and_can_be_reset(broker: Serving) -> None:
    connection = connect(broker)
    connection.channel().queue_declare("q")
    assert ctl(broker, "reset")[2] == 64
    assert ctl(broker, "stop_app") == ("Stopping rabbit application on node one@localhost ...\n", "", 0)
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="CONNECTION_FORCED"):
        connection.process_data_events(1)
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connect(broker)
    assert ctl(broker, "reset") == ("Resetting node one@localhost ...\n", "", 0)
    assert ctl(broker, "start_app") == ("Starting node one@localhost ...\n", "", 0)
    with (
        connect(broker) as again,
        pytest.raises(pika.exceptions.ChannelClosedByBroker, match="no queue 'q'"),
    ):
        again.channel().queue_declare("q", passive=True)


def test_suspended_listeners_keep_who_is_there(broker: Serving) -> None:
    connection = connect(broker)
    assert ctl(broker, "suspend_listeners")[2] == 0
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connect(broker)
    connection.channel().queue_declare("q")
    assert ctl(broker, "resume_listeners")[2] == 0
    connect(broker).close()
    connection.close()


def test_shutdown_returns_when_the_process_is_gone(broker: Serving) -> None:
    # A child that nobody has waited for would still be there.
    broker.process.poll()
    output, _, code = ctl(broker, "stop")
    assert (output, code) == ("Stopping and halting node one@localhost ...\n", 0)
    assert broker.process.wait(10) == 0
    assert ctl(broker, "await_startup", "-t", "1")[2] == 75
    assert ctl(broker, "stop", "--idempotent")[2] == 0


def test_who_waits_for_a_node_waits_for_its_process(broker: Serving) -> None:
    output, _, code = ctl(broker, "wait", "--pid", str(broker.process.pid))
    assert code == 0
    assert output.endswith("Applications 'rabbit_and_plugins' are running on node 'one@localhost'\n")
    assert ctl(broker, "wait", "/nowhere.pid", "-t", "1")[2] == 75


@pytest.mark.parametrize(
    ("line", "code", "reason"),
    [
        ("set_vm_memory_high_watermark 5", 65, "Bad argument: The threshold should be a fraction between 0.0 and 1.0"),
        ("set_vm_memory_high_watermark absolute x", 65, "Bad argument."),
        ("set_disk_free_limit x", 65, "Bad argument."),
        ("import_definitions /nowhere", 65, "Bad argument: File /nowhere does not exist"),
        ("wait", 69, ""),
    ],
)
def test_what_makes_no_sense_is_refused(line: str, code: int, reason: str) -> None:
    done = run_without_node(f"rabbitmqctl {line}")
    if reason:
        assert done.complaint.startswith(f"Error (argument validation): {reason}\n")
        assert done.exit_code == code


def test_limits_are_sent_as_shares_and_amounts() -> None:
    answers = {"PUT /_broker/memory-limit": 204, "PUT /_broker/disk-free-limit": 204, "PUT /_broker/log-level": 204}
    with canned(answers) as api:
        for line in (
            "set_vm_memory_high_watermark 1",
            "set_vm_memory_high_watermark absolute 2GB",
            "set_disk_free_limit mem_relative 2",
            "set_disk_free_limit 60MB",
            "set_log_level critical",
        ):
            assert api.run(f"rabbitmqctl {line}").exit_code == 0, line
        assert [body["value"] for _, body in api.changes()] == ["1.0", "2GB", "2.0", "60MB", "error"]


def test_definitions_go_to_a_file_and_come_from_one(tmp_path: Path) -> None:
    path = tmp_path / "definitions.json"
    with canned({"GET /api/definitions": {"users": [], "a": "ü"}, "POST /api/definitions": 204}) as api:
        assert api.run(f"rabbitmqctl export_definitions {path}").exit_code == 0
        assert path.read_text() == '{"a":"ü","users":[]}'
        assert api.run("rabbitmqctl export_definitions -").output == path.read_text()
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
        assert api.run("rabbitmqctl delete_queue other").complaint == "Error:\nQueue not found\n"


def test_of_erlang_only_a_few_expressions_are_known() -> None:
    with canned() as api:
        assert api.run("rabbitmqctl eval 'node().'").output == "rabbit@test\n"
        done = api.run("rabbitmqctl eval 'erlang:halt().'")
    assert done.exit_code == 69
    assert "has no Erlang" in done.complaint


def test_this_process_is_alive_and_one_that_ended_is_not() -> None:
    from amqp_broker.cli.node_commands import is_alive

    assert is_alive(os.getpid())
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(child, 0)
    assert not is_alive(child)
