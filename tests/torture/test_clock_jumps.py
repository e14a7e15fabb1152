"""A system clock that jumps while a broker works, and between its runs (libfaketime)."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.brokers import AmqpBroker
from compat.waiting import wait_until
from tests.client import Client

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
pytestmark = [
    pytest.mark.verify,
    pytest.mark.skipif(not LIBRARIES and not os.environ.get("CI"), reason="needs libfaketime (Debian: faketime)"),
]

HEARTBEAT_S = 4
TTL_MS = 3_600_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[AmqpBroker]:
    """Provide a broker whose wall clock, not the monotonic one, is as `jump` sets it."""
    broker = AmqpBroker(tmp_path)
    broker.variables = {
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(tmp_path / "faketime"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    jump(broker, "+0d")
    with broker.running():
        yield broker


def jump(broker: AmqpBroker, to: str) -> None:
    """Set the wall clock before or after the real time: `+1d`."""
    (broker.folder / "faketime").write_text(to, "utf-8")


def get(broker: AmqpBroker, path: str) -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:{broker.management_port}/api/{path}")
    request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def fill(client: Client) -> None:
    client.declare("kept", durable=True)
    client.declare("hour", durable=True, arguments={"x-message-ttl": TTL_MS})
    client.declare("stream", durable=True, arguments={"x-queue-type": "stream", "x-max-age": "1h"})
    for queue in ("kept", "hour", "stream"):
        client.publish(queue, b"x", delivery_mode=2)
    client.sync()


@pytest.mark.parametrize("to", ["+3650d", "-3650d"])
def test_a_jump_while_a_broker_works_changes_nothing(broker: AmqpBroker, to: str) -> None:
    with Client(broker.port).open() as client:
        fill(client)
    uptime_ms = get(broker, "nodes")[0]["uptime"]
    # Opened last, since only time without work counts toward a heartbeat that is missed.
    with Client(broker.port).open(heartbeat=HEARTBEAT_S) as client:
        jump(broker, to)
        # The client sends one heartbeat in the time of two.
        time.sleep(HEARTBEAT_S)
        client.send_bytes(b"\x08\x00\x00\x00\x00\x00\x00\xce")
        time.sleep(HEARTBEAT_S)
        assert client.ready_count("hour") == client.ready_count("kept") == 1
        client.declare("second", arguments={"x-message-ttl": 200})
        client.publish("second", b"x")
        wait_until(lambda: client.ready_count("second") == 0)
        assert 0 < get(broker, "nodes")[0]["uptime"] - uptime_ms < 60_000
    assert "Traceback" not in broker.log_path.read_text("utf-8")


@pytest.mark.parametrize(("to", "expected"), [("-1d", 1), ("+1d", 0)])
def test_a_jump_between_two_runs_counts_as_time_that_has_passed(broker: AmqpBroker, to: str, expected: int) -> None:
    with Client(broker.port).open() as client:
        fill(client)
    broker.stop()
    jump(broker, to)
    broker.start()
    with Client(broker.port).open() as client:
        wait_until(lambda: client.ready_count("hour") == expected)
        assert client.ready_count("kept") == 1
        for queue in ("kept", "stream"):
            client.publish(queue, b"y", delivery_mode=2)
        wait_until(lambda: client.ready_count("kept") == 2)
    broker.stop()
    broker.start()
    with Client(broker.port).open() as client:
        assert client.ready_count("kept") == 2
        assert client.ready_count("stream") >= 1
    assert "Traceback" not in broker.log_path.read_text("utf-8")
