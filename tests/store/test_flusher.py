from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pamqp.commands import Confirm, Connection

from amqp_broker.exit_codes import EX_IOERR
from amqp_broker.settings.settings import OS
from amqp_broker.store import checkpoint, flusher
from amqp_broker.store.flusher import Flusher
from tests.client import Client
from tests.present import present
from tests.running import RunningServer

pytestmark = pytest.mark.skipif(not checkpoint.boot_id(), reason="boot ids are Linux's")

PERSISTENT = 2


def test_flushes_follow_each_other_until_the_end_whatever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "FLUSH_PERIOD_S", 0.001)
    calls: list[int] = []
    are_enough = threading.Event()

    def sync() -> None:
        calls.append(len(calls))
        if len(calls) == 3:
            are_enough.set()
        raise OSError("the disk is gone")

    flushes = Flusher(sync)
    flushes.start()
    assert are_enough.wait(20)
    flushes.stop()
    assert "store-flusher" not in {thread.name for thread in threading.enumerate()}


def test_nothing_is_confirmed_after_a_failed_flush_and_the_broker_asks_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    # The test flushes by itself.
    monkeypatch.setattr(flusher, "FLUSH_PERIOD_S", 3600)
    with RunningServer(ephemeral=False, data_dir=str(tmp_path), store_sync=OS) as running:
        flushed = running.ask(lambda server: present(present(server.store).environment.checkpoint))
        client = Client(running.port)
        client.capabilities["connection.blocked"] = True
        client.open().declare("q", durable=True)
        client.call(Confirm.Select())
        with monkeypatch.context() as failing:
            failing.setattr("os.fdatasync", fail)
            with pytest.raises(checkpoint.FlushFailed, match="Input/output error"):
                flushed.sync()
        client.publish("q", b"1", delivery_mode=PERSISTENT)
        assert client.expect(Connection.Blocked, channel=0).reason == "low on disk"
        broken = running.ask(lambda server: (server.broken, server.exit_code))
        assert "data.mdb' cannot be flushed to the disk: Input/output error" in present(broken[0])
        assert broken[1] == EX_IOERR
