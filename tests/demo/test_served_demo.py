from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.demo.served_demo import NAME, ServedDemo
from tests.running import RunningServer

# A strategy that waits for nothing ends soon.
QUICK = {"strategy": "async", "messages": 30, "rate": 0, "window": 10, "seed": 3, "faults": ["nack", "cut", "return"]}


@pytest.fixture
def running() -> Iterator[RunningServer]:
    with RunningServer() as server:
        yield server


@pytest.fixture
def demo(running: RunningServer) -> ServedDemo:
    return running.ask(ServedDemo)


def test_a_demo_runs_in_its_own_virtual_host_and_leaves_nothing(running: RunningServer, demo: ServedDemo) -> None:
    assert demo.status()["state"] == "none"
    running.ask(lambda server: demo.start(QUICK))
    running.until(lambda server: demo.state != "running")
    status = demo.status()
    assert (status["state"], status["reason"]) == ("done", "")
    figures = status["figures"]
    assert [one["state"] for one in figures["plan"]] == ["over"] * 3
    assert sum(figures["pulse"]) == len(figures["grid"].replace("0", "")) == 30
    [proof] = figures["results"]
    assert (proof["confirmed"], proof["distinct"], proof["is_held"]) == (30, 30, True)
    assert running.ask(lambda server: list(server.broker.vhosts)) == ["/"]
    assert running.ask(lambda server: server.broker.users.get(NAME)) is None
    assert running.ask(lambda server: len(server.broker.faults)) == 0
    # It can be started again.
    running.ask(lambda server: demo.start(QUICK))
    running.until(lambda server: demo.state == "done")


def test_all_strategies_run_one_after_the_other(running: RunningServer, demo: ServedDemo) -> None:
    running.ask(lambda server: demo.start({**QUICK, "strategy": "all", "faults": []}))
    running.until(lambda server: demo.state != "running")
    results = demo.status()["figures"]["results"]
    assert [one["strategy"] for one in results] == ["sync", "window", "async", "naive"]


def test_a_demo_is_stopped_in_the_middle(running: RunningServer, demo: ServedDemo) -> None:
    running.ask(lambda server: demo.start({**QUICK, "messages": 10_000, "rate": 10}))
    running.until(lambda server: (demo.status()["figures"] or {"confirmed": 0})["confirmed"])
    with pytest.raises(RuntimeError, match="running already"):
        running.ask(lambda server: demo.start(QUICK))
    running.ask(lambda server: demo.stop())
    running.until(lambda server: demo.state == "stopped")
    assert running.ask(lambda server: NAME in server.broker.vhosts) is False
    assert running.ask(lambda server: len(server.broker.connections)) == 0


def test_a_demo_whose_virtual_host_is_deleted_says_so(running: RunningServer, demo: ServedDemo) -> None:
    running.ask(lambda server: demo.start({**QUICK, "messages": 10_000, "rate": 10}))
    running.until(lambda server: (demo.status()["figures"] or {"confirmed": 0})["confirmed"])
    running.ask(lambda server: server.broker.delete_vhost(NAME))
    running.until(lambda server: demo.state == "stopped")
    assert demo.reason == f"the virtual host {NAME} is gone"


def test_the_rest_of_a_killed_demo_is_replaced_and_the_work_of_others_is_not(
    running: RunningServer, demo: ServedDemo
) -> None:
    running.ask(lambda server: server.broker.add_vhost(NAME))
    with pytest.raises(RuntimeError, match="which the demo has not made"):
        running.ask(lambda server: demo.start(QUICK))
    running.ask(lambda server: server.broker.delete_vhost(NAME))
    running.ask(lambda server: server.broker.add_vhost(NAME, Metadata(tags=(NAME,))))
    running.ask(lambda server: demo.start({**QUICK, "messages": 3, "faults": []}))
    running.until(lambda server: demo.state == "done")
