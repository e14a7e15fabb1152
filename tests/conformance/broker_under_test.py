"""A broker in this process, as the player of the scenarios sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from amqp_broker.conformance.lab import Play, Scenario, run
from tests.running import RunningServer


@dataclass
class BrokerUnderTest:
    port: int
    host: str = "127.0.0.1"
    declares_durable: bool = True


@contextmanager
def running_broker() -> Iterator[BrokerUnderTest]:
    """Start a broker, and stop it at the end."""
    with RunningServer() as server:
        yield BrokerUnderTest(server.port)


def transcript(play: Play, broker: BrokerUnderTest, *, declares_durable: bool = True) -> list[str]:
    """Play a scenario and return its lines."""
    return run(Scenario("x", "area", play), replace(broker, declares_durable=declares_durable)).splitlines()
