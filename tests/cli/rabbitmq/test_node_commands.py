"""Commands for the node, at a real broker where its control socket has all they need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from amqp_broker.cli.rabbitmq.node_commands import COMMANDS
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


def test_the_memory_watermark_blocks_and_unblocks_publishers(broker: Serving) -> None:
    connection = connect(broker)
    told: list[str] = []
    connection.add_on_connection_blocked_callback(lambda *_: told.append("blocked"))
    connection.add_on_connection_unblocked_callback(lambda *_: told.append("unblocked"))
    channel = connection.channel()

    def hears(*expected: str) -> bool:
        connection.process_data_events(0.01)
        return told == list(expected)

    assert ctl(broker, "set_vm_memory_high_watermark", "absolute", "1")[2] == 0
    assert "\nMemory high watermark setting: 0.0 gb, computed to: 0.0 gb\n" in ctl(broker, "status")[0]
    channel.basic_publish("", "nowhere", b"")
    wait_until(lambda: hears("blocked"))
    assert ctl(broker, "set_vm_memory_high_watermark", "0.4")[2] == 0
    wait_until(lambda: hears("blocked", "unblocked"))
    connection.close()


def test_a_stopped_app_refuses_clients_and_can_be_reset(broker: Serving) -> None:
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


def test_suspended_listeners_keep_open_connections(broker: Serving) -> None:
    connection = connect(broker)
    assert ctl(broker, "suspend_listeners")[2] == 0
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        connect(broker)
    connection.channel().queue_declare("q")
    assert ctl(broker, "resume_listeners")[2] == 0
    connect(broker).close()
    connection.close()


def test_shutdown_returns_when_the_process_is_gone(broker: Serving) -> None:
    # Without wait(), the child would remain as a zombie.
    broker.process.poll()
    output, _, code = ctl(broker, "stop")
    assert (output, code) == ("Stopping and halting node one@localhost ...\n", 0)
    assert broker.process.wait(10) == 0
    assert ctl(broker, "await_startup", "-t", "1")[2] == 75
    assert ctl(broker, "stop", "--idempotent")[2] == 0


def test_waiting_for_a_node_waits_for_its_process(broker: Serving) -> None:
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
        ("wait", 64, '"No pid or pidfile specified"'),
        ("wait --pid ²", 69, "process_not_running"),
        ("wait --pid 99999999999999999999", 69, "process_not_running"),
        ("wait /", 69, "cannot read '/': Is a directory"),
        ("await_online_nodes x", 64, "Target count must be a positive number"),
        ("await_startup -t ²", 64, "Invalid options for this command:\n--timeout : ²"),
    ],
)
def test_invalid_values_are_refused(line: str, code: int, reason: str) -> None:
    done = run_without_node(f"rabbitmqctl {line}")
    assert done.complaint.startswith((f"Error (argument validation): {reason}\n", f"Error:\n{reason}"))
    assert done.exit_code == code


def test_limits_are_sent_as_shares_and_as_amounts_with_units() -> None:
    answers = {"PUT /_broker/memory-limit": 204, "PUT /_broker/disk-free-limit": 204, "PUT /_broker/log-level": 204}
    with canned(answers) as api:
        for line in (
            "set_vm_memory_high_watermark 1",
            "set_vm_memory_high_watermark 0.000000001",
            "set_vm_memory_high_watermark absolute 2GB",
            "set_vm_memory_high_watermark absolute 1",
            "set_disk_free_limit mem_relative 2",
            "set_disk_free_limit 60MB",
            "set_log_level critical",
        ):
            assert api.run(f"rabbitmqctl {line}").exit_code == 0, line
        sent = [body["value"] for _, body in api.changes()]
        assert sent == ["1.0", "00.0000000010", "2GB", "1B", "2.0", "60MB", "error"]


def test_this_process_is_alive_and_one_that_ended_is_not() -> None:
    from amqp_broker.cli.rabbitmq.node_commands import is_alive

    assert is_alive(os.getpid())
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(child, 0)
    assert not is_alive(child)


def test_wait_gives_up_after_ten_seconds() -> None:
    """As in 3.10.8, 4.0.5 and 4.3.6."""
    [command] = [command for command in COMMANDS if command.name == "wait"]
    assert command.timeout_s == 10
