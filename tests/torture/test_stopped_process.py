"""A broker is stopped for a while (SIGSTOP), as when a machine sleeps or a container is paused."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.brokers import AmqpBroker
from compat.waiting import wait_until
from tests.client import Client

pytestmark = pytest.mark.verify

HEARTBEAT_S = 1
STOPPED_S = 6
HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[AmqpBroker]:
    broker = AmqpBroker(tmp_path)
    with broker.running():
        yield broker


class Beating:
    """A client that sends heartbeats all the time, and forgives the broker's silence."""

    def __init__(self, port: int) -> None:
        self.client = Client(port).open(heartbeat=HEARTBEAT_S)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat)
        self._thread.start()

    def _beat(self) -> None:
        while not self._is_over.wait(HEARTBEAT_S / 2):
            self.client.send_bytes(HEARTBEAT_FRAME)

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()


def test_clients_whose_heartbeats_waited_meanwhile_stay_connected(broker: AmqpBroker) -> None:
    clients = [Beating(broker.port) for _ in range(20)]
    try:
        os.kill(broker.pid, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(broker.pid, signal.SIGCONT)
        time.sleep(3 * HEARTBEAT_S)
    finally:
        for each in clients:
            each.stop()
    for each in clients:
        each.client.sync()


def test_a_silent_client_is_still_noticed(broker: AmqpBroker) -> None:
    silent = Client(broker.port).open(heartbeat=HEARTBEAT_S)
    os.kill(broker.pid, signal.SIGSTOP)
    time.sleep(STOPPED_S)
    os.kill(broker.pid, signal.SIGCONT)
    with pytest.raises(ConnectionError):
        silent.next()


def test_messages_that_expired_meanwhile_are_gone_and_others_are_there(broker: AmqpBroker) -> None:
    with Client(broker.port).open() as client:
        client.declare("short", arguments={"x-message-ttl": 1000})
        client.declare("long", arguments={"x-message-ttl": 600_000})
        for queue in ("short", "long"):
            client.publish(queue, b"x")
        client.sync()
        os.kill(broker.pid, signal.SIGSTOP)
        time.sleep(STOPPED_S)
        os.kill(broker.pid, signal.SIGCONT)
        wait_until(lambda: client.ready_count("short") == 0)
        assert client.ready_count("long") == 1
