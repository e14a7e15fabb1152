"""Go's client under each fault: the publisher loses no confirmed message, and consumers report it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.queues.queue import QueueDeclaration
from compat.go.test_go import Program, executable, number, race_option  # noqa: F401 # two of them are fixtures
from compat.go.toolchain import run_go
from tests.running import RunningServer

MESSAGES = 12
BOTH = ["delivered one false", "delivered two false"]
pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def running() -> Iterator[RunningServer]:
    with RunningServer() as server:
        yield server


def ids(running: RunningServer) -> set[int]:
    """Return the numbers of the messages in the publisher's queue."""

    def look(server: Any) -> set[int]:
        messages = server.broker.vhosts["/"].queues["orders"].messages()
        return {number(message.properties().message_id) for message in messages}

    return running.ask(look)


@pytest.fixture
def publish(executable: Path, running: RunningServer) -> Iterator[Callable[[], Program]]:  # noqa: F811
    """Start the publisher."""
    programs: list[Program] = []

    def start(**settings: str) -> Program:
        quick = {"INTERVAL": "1ms", "CONFIRM_TIMEOUT": "400ms", "RETRY_INTERVAL": "20ms", "MESSAGES": str(MESSAGES)}
        url = f"amqp://guest:guest@127.0.0.1:{running.port}/"
        programs.append(Program(executable, {**os.environ, **quick, "AMQP_URL": url, **settings}))
        return programs[-1]

    yield start
    for program in programs:
        program.kill()


@pytest.mark.parametrize(
    ("action", "said", "log"),
    [
        ("confirm_nack", {"times": 2}, "nacked by the broker"),
        ("confirm_drop", {"times": 1}, "no confirmation within 400ms"),
        ("confirm_delay", {"times": 1, "delay_ms": 700}, "no confirmation within 400ms"),
        ("confirm_delay", {"times": 3, "delay_ms": 50}, ""),
        ("return", {"times": 1}, "returned by the broker: 312 NO_ROUTE"),
        ("close_channel", {"times": 1, "on": "publish", "code": 404}, "404"),
        ("close_channel", {"times": 1, "on": "confirm"}, "406"),
        ("close_connection", {"times": 1, "on": "publish"}, "320"),
        ("close_connection", {"times": 1, "on": "confirm", "code": 541, "text": "INTERNAL_ERROR"}, "541"),
        ("cut", {"times": 1, "on": "publish"}, "lost"),
        ("cut", {"times": 1, "on": "confirm", "is_mid_frame": True}, "lost"),
        ("reset", {"times": 1, "on": "confirm"}, "lost"),
        ("reset", {"times": 1, "on": "publish", "is_mid_frame": True}, "lost"),
        ("black_hole", {"times": 1, "on": "publish"}, "no confirmation within 400ms"),
        ("black_hole", {"times": 1, "on": "confirm"}, "no confirmation within 400ms"),
        ("block", {"times": 1, "on": "publish", "duration_ms": 200}, ""),
    ],
)
def test_no_confirmed_message_is_missing(
    running: RunningServer, publish: Callable[[], Program], action: str, said: dict[str, Any], log: str
) -> None:
    rule = running.faults.add(action, routing_key="order.*" if action != "block" else None, after=3, **said)
    program = publish()
    assert program.finish() == 0, program.log_tail
    assert (rule.hits, len(program.confirmed)) == (said["times"], MESSAGES)
    assert ids(running) == set(range(1, MESSAGES + 1))
    assert bool(program.logged("reconnecting")) is bool(log)
    assert program.logged(log)


def test_dead_letters_of_a_full_queue_are_lost(running: RunningServer, publish: Callable[[], Program]) -> None:
    declaration = QueueDeclaration("dead", {}, is_durable=True)
    definition = {"max-length": 5, "dead-letter-exchange": "", "dead-letter-routing-key": "dead"}

    def prepare(server: Any) -> None:
        server.broker.vhosts["/"].declare_queue(declaration)
        server.broker.vhosts["/"].policies.put(Policy("short", "^orders$", definition))

    running.ask(prepare)
    rule = running.faults.add("drop_dead_letter", queue="dead", times=4)
    assert publish().finish() == 0
    # The rule loses the dead letters 1 to 4.
    dead = running.ask(lambda server: list(server.broker.vhosts["/"].queues["dead"].messages()))
    assert (ids(running), len(dead), rule.hits) == (set(range(8, MESSAGES + 1)), MESSAGES - 5 - 4, 4)


def test_a_blocked_publisher_continues_when_unblocked(running: RunningServer, publish: Callable[..., Program]) -> None:
    rule = running.faults.add("block", on="publish", after=3, times=1)
    program = publish(CONFIRM_TIMEOUT="10s")
    program.wait_for(lambda: rule.hits == 1, "block")
    assert len(program.confirmed) < MESSAGES
    running.faults.add("unblock")
    assert program.finish() == 0, program.log_tail
    assert (ids(running), program.logged("reconnecting")) == (set(range(1, MESSAGES + 1)), [])


@pytest.mark.parametrize("kill", [False, True])
def test_a_publisher_survives_a_restart_and_no_confirmed_message_is_missing(
    publish: Callable[..., Program], tmp_path: Path, kill: bool
) -> None:
    with RunningServer(ephemeral=False, data_dir=str(tmp_path)) as running:
        url = f"amqp://guest:guest@127.0.0.1:{running.port}/"
        # A restart may take any time.
        program = publish(AMQP_URL=url, INTERVAL="20ms", MESSAGES="40", MAX_ATTEMPTS="0")
        program.wait_for(lambda: len(program.confirmed) > 5, "confirms")
        running.restart(kill=kill)
        assert program.finish() == 0, program.log_tail
        assert program.logged("reconnecting")
        assert len(program.confirmed) == 40
        assert ids(running) == set(range(1, 41))


def test_a_publisher_reconnects_after_refused_connections(
    running: RunningServer, publish: Callable[..., Program]
) -> None:
    rule = running.faults.add("refuse", times=3)
    program = publish()
    assert program.finish() == 0, program.log_tail
    assert (rule.hits, len(program.logged("cannot connect"))) == (3, 3)


def test_a_refused_login_is_a_refusal(running: RunningServer, publish: Callable[..., Program]) -> None:
    running.faults.add("refuse_login", user="guest")
    assert publish().finish() == 1


@pytest.mark.parametrize("direction", ["input", "output"])
@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("latency", {"delay_ms": 20, "jitter_ms": 20, "seed": 1}),
        ("bandwidth", {"bytes_per_s": 10_000}),
        ("slow_close", {"delay_ms": 300}),
    ],
)
def test_a_publisher_waits_over_a_slow_link(
    running: RunningServer, publish: Callable[..., Program], action: str, said: dict[str, Any], direction: str
) -> None:
    where = {} if action == "slow_close" else {"direction": direction}
    rule = running.faults.add(action, on="open", **said, **where)
    program = publish()
    assert program.finish() == 0
    assert (rule.hits, program.logged("reconnecting")) == (1, [])


@pytest.fixture(scope="session")
def consumer(race_option: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    """Build the consumer; each build takes a second of processor time for linking."""
    path = tmp_path_factory.mktemp("go") / "consumer"
    run_go("build", *race_option, "-o", str(path), "./consumer")
    return path


@pytest.fixture
def consume(consumer: Path, running: RunningServer) -> Iterator[Callable[[], Program]]:
    """Start a consumer of the queue "q", and wait until it consumes."""
    programs: list[Program] = []
    running.ask(lambda server: server.broker.vhosts["/"].declare_queue(QueueDeclaration("q", {})))

    def start() -> Program:
        url = f"amqp://guest:guest@127.0.0.1:{running.port}/"
        programs.append(Program(consumer, {"AMQP_URL": url, "QUEUE": "q"}))
        programs[-1].wait_for(lambda: "ready" in programs[-1].stdout, "consumer")
        return programs[-1]

    yield start
    for program in programs:
        program.kill()


def push(running: RunningServer, *bodies: str) -> None:
    """Put messages into the consumer's queue."""
    from tests.broker_parts import new_message

    def put(server: Any) -> None:
        for body in bodies:
            server.broker.vhosts["/"].queues["q"].push(new_message(body.encode()))
        server.flush()

    running.ask(put)


@pytest.mark.parametrize(
    ("action", "said", "lines"),
    [
        ("duplicate", {"times": 1}, ["delivered one false", "delivered one true", "delivered two false"]),
        ("delay_delivery", {"times": 1, "delay_ms": 200}, ["delivered two false", "delivered one false"]),
        ("cancel_consumer", {"on": "deliver", "after": 1, "times": 1}, [*BOTH, "cancelled go"]),
        ("cancel_consumer", {}, ["cancelled go"]),
        ("close_channel", {"code": 404, "text": "NOT_FOUND - x"}, ["channel closed 404 NOT_FOUND - x"]),
        ("close_connection", {}, ["connection closed 320 CONNECTION_FORCED - closed by a fault"]),
        ("cut", {"is_mid_frame": True}, ["connection closed 501 unexpected EOF"]),
        ("cut", {}, ["connection closed 501 EOF"]),
        ("reset", {}, ["connection closed 501 read tcp"]),
        ("block", {"text": "low on ideas", "duration_ms": 100}, ["blocked low on ideas", "unblocked"]),
        ("stop_heartbeats", {}, ["connection closed 501 read tcp"]),
        ("black_hole", {}, ["connection closed 501 read tcp"]),
    ],
)
def test_a_consumer_reports_the_fault(
    running: RunningServer, consume: Callable[[], Program], action: str, said: dict[str, Any], lines: list[str]
) -> None:
    program = consume()
    running.faults.add(action, **said)
    if any("delivered" in line for line in lines):
        push(running, "one", "two")
    program.wait_for(lambda: len(program.stdout) > len(lines), f"{lines} in {program.stdout}")
    assert [line[: len(start)] for line, start in zip(program.stdout[1:], lines, strict=True)] == lines
    running.ask(lambda server: server.broker.faults.clear())


def test_held_messages_come_one_by_one(running: RunningServer, consume: Callable[[], Program]) -> None:
    program = consume()
    rule = running.faults.add("hold_delivery", queue="q")
    push(running, "one", "two")
    running.faults.release(rule)
    program.wait_for(lambda: len(program.stdout) == 2, "one")
    running.faults.release(rule)
    program.wait_for(lambda: len(program.stdout) == 3, "two")
    assert program.stdout[1:] == ["delivered one false", "delivered two false"]
    running.ask(lambda server: server.broker.faults.clear())


def test_a_message_whose_ack_was_lost_is_redelivered(running: RunningServer, consume: Callable[[], Program]) -> None:
    running.faults.add("drop_ack", times=1)
    first = consume()
    push(running, "one", "two")
    first.wait_for(lambda: len(first.stdout) == 3, "both")
    running.until(lambda server: server.broker.vhosts["/"].queues["q"].unacked_count == 1)
    first.kill()
    second = consume()
    second.wait_for(lambda: "delivered one true" in second.stdout, "the message again")
