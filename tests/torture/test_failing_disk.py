"""A broker whose disk fails: tests/torture/disk.c answers its calls with errors."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pamqp.commands import Basic, Confirm, Connection

from amqp_broker.exit_codes import EX_CANTCREAT, EX_IOERR
from amqp_broker.settings.settings import FULL, OS
from compat.brokers import AmqpBroker
from tests.client import Client
from tests.present import present
from tests.torture.disk import Call, Faults, variables

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="the disk needs Linux and a C compiler"
)

PERSISTENT = 2
# Lazy commits are flushed every second or so; much longer on a busy machine.
PATIENCE_S = 60
DATA = "data.mdb"


class Failing:
    """A broker and its disk."""

    def __init__(self, folder: Path) -> None:
        (folder / "disk").mkdir()
        self.faults = Faults(folder / "faults")
        self.broker = AmqpBroker(folder / "disk")
        self.broker.variables = variables(folder / "disk", faults=self.faults)

    def start(self, store_sync: str = FULL) -> Failing:
        self.broker.options = (*self.broker.options, "--store-sync", store_sync)
        self.broker.start()
        return self

    def end(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        code = present(self.broker.process).wait(30)
        self.broker.process = None
        return code

    def end_of_start(self) -> tuple[int, str]:
        """Start the process, which must fail; return its exit code and the log."""
        self.broker.spawn()
        return self.end(), self.log()

    def log(self) -> str:
        return self.broker.log_path.read_text("utf-8")


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Failing]:
    failing = Failing(tmp_path)
    yield failing
    failing.broker.kill()


def publisher(failing: Failing) -> Client:
    client = Client(failing.broker.port).open()
    client.declare("q", durable=True)
    client.call(Confirm.Select())
    return client


def publish(client: Client, body: bytes) -> None:
    client.publish("q", body, delivery_mode=PERSISTENT)


def bodies(failing: Failing) -> list[bytes]:
    with Client(failing.broker.port).open() as client:
        count = client.ready_count("q")
        client.consume("q", no_ack=True)
        return [client.expect_delivery()[1] for _ in range(count)]


@pytest.mark.parametrize("calls", [Call.WRITE, Call.SYNC])
def test_a_refused_write_is_made_again_before_the_message_is_confirmed(failing: Failing, calls: Call) -> None:
    failing.start()
    with publisher(failing) as client:
        publish(client, b"1")
        client.expect(Basic.Ack)
        failing.faults.set(calls, name=DATA, count=3)
        publish(client, b"2")
        assert client.expect(Basic.Ack).delivery_tag == 2
    assert failing.faults.failed == 3
    assert "the store cannot be written, publishers are blocked" in failing.log()
    failing.broker.restart()
    assert bodies(failing) == [b"1", b"2"]


def test_after_a_failed_flush_of_lazy_commits_the_broker_ends(failing: Failing) -> None:
    failing.start(OS)
    with publisher(failing) as client:
        publish(client, b"1")
        client.expect(Basic.Ack)
    # A regular end flushes all.
    failing.broker.stop()
    failing.broker.start()
    with publisher(failing) as client:
        failing.faults.set(Call.SYNC, name=DATA, count=1)
        method: object = Basic.Ack()
        deadline = time.monotonic() + PATIENCE_S
        while isinstance(method, Basic.Ack) and time.monotonic() < deadline:
            publish(client, b"2")
            method, _ = client.next()
    assert isinstance(method, Connection.Close)
    assert method.reply_code == 320
    assert failing.end() == EX_IOERR
    assert f"{DATA}' cannot be flushed to the disk: Input/output error" in failing.log()
    failing.broker.start()
    assert "could not write all commits" in failing.log()
    found = bodies(failing)
    assert found[:1] == [b"1"]
    assert set(found[1:]) <= {b"2"}


def test_a_page_that_cannot_be_read_ends_the_broker(failing: Failing) -> None:
    failing.start()
    with publisher(failing) as client:
        publish(client, b"1")
        client.expect(Basic.Ack)
        os.truncate(failing.broker.folder / "data" / DATA, 8192)
        publish(client, b"2")
        with pytest.raises(ConnectionError):
            client.expect(Basic.Ack)
    assert failing.end() == EX_IOERR
    assert f"{DATA}' cannot be read: the disk gives no answer for a page" in failing.log()


def test_a_store_that_cannot_be_read_is_refused(failing: Failing) -> None:
    failing.start().broker.stop()
    failing.faults.set(Call.READ, name=DATA)
    code, log = failing.end_of_start()
    assert code == EX_CANTCREAT
    assert "Input/output error" in log
    assert "Traceback" not in log


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_no_broker_starts_where_nothing_can_be_locked(failing: Failing, number: int) -> None:
    failing.start()
    failing.faults.set(Call.LOCK, number)
    second = AmqpBroker(failing.broker.folder)
    second.variables = failing.broker.variables
    second.spawn()
    assert present(second.process).wait(30) == EX_CANTCREAT
    assert f"cannot be locked: {os.strerror(number)}" in failing.log()
