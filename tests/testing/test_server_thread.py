from __future__ import annotations

import asyncio
import socket
import threading
import time
from pathlib import Path

import pytest

from amqp_broker.server.listening import CannotListen
from amqp_broker.settings.settings import Settings
from amqp_broker.testing.server_thread import ServerThread

SETTINGS = Settings(host="127.0.0.1", port=0, ephemeral=True, management=False, prometheus=False, control=False)


def test_ask_calls_the_question_in_the_thread_of_the_server() -> None:
    host = ServerThread(asyncio.new_event_loop)
    host.start(SETTINGS)
    asked = host.ask(lambda server: threading.current_thread())
    assert asked is not threading.current_thread()
    host.stop()
    assert not asked.is_alive()


def test_a_restart_waits_for_its_port() -> None:
    host = ServerThread(asyncio.new_event_loop)
    host.start(SETTINGS)
    port = host.server.ports["amqp"]
    host.stop()
    with socket.create_server(("127.0.0.1", port)) as other:
        threading.Timer(0.1, other.close).start()
        start = time.monotonic()
        host.start(Settings(**{**SETTINGS.__dict__, "port": port}))
        assert time.monotonic() - start >= 0.05
    assert host.server.ports["amqp"] == port
    host.stop()


def test_a_failed_start_leaves_no_thread() -> None:
    host = ServerThread(asyncio.new_event_loop)
    with pytest.raises(CannotListen):
        host.start(Settings(**{**SETTINGS.__dict__, "host": "no.such.host.invalid"}))
    assert not host.is_running


def test_a_failed_start_releases_the_store(tmp_path: Path) -> None:
    host = ServerThread(asyncio.new_event_loop)
    settings = Settings(**{**SETTINGS.__dict__, "ephemeral": False, "data_dir": str(tmp_path)})
    with pytest.raises(CannotListen):
        host.start(Settings(**{**settings.__dict__, "host": "no.such.host.invalid"}))
    host.start(settings)
    host.stop()
