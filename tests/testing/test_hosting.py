from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

from amqp_broker.config import Config
from amqp_broker.server.listening import CannotListen
from amqp_broker.testing.hosting import Host

CONFIG = Config(host="127.0.0.1", port=0, ephemeral=True, management=False, prometheus=False, control=False)


def test_questions_are_answered_in_the_thread_of_the_server() -> None:
    host = Host(asyncio.new_event_loop)
    host.start(CONFIG)
    asked = host.ask(lambda server: threading.current_thread())
    assert asked is not threading.current_thread()
    host.stop()
    assert not asked.is_alive()


def test_a_host_starts_again_where_it_was_as_soon_as_the_port_is_free() -> None:
    host = Host(asyncio.new_event_loop)
    host.start(CONFIG)
    port = host.server.ports["amqp"]
    host.stop()
    with socket.create_server(("127.0.0.1", port)) as other:
        threading.Timer(0.1, other.close).start()
        start = time.monotonic()
        host.start(Config(**{**CONFIG.__dict__, "port": port}))
        assert time.monotonic() - start >= 0.05
    assert host.server.ports["amqp"] == port
    host.stop()


def test_a_host_that_could_not_start_has_no_thread_left() -> None:
    host = Host(asyncio.new_event_loop)
    with pytest.raises(CannotListen):
        host.start(Config(**{**CONFIG.__dict__, "host": "no.such.host.invalid"}))
    assert not host.is_running
