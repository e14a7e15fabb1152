"""Tasks on a real worker with results over `rpc://`: calls, canvases, retries, routing, remote control."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, chain, group
from celery.exceptions import TaskRevokedError
from celery.result import AsyncResult

from compat.brokers import BrokerProcess
from compat.celery.tasks import add, arrival, divide, flaky, guard, total
from compat.celery.workers import Worker
from compat.unique_names import unique_name
from compat.waiting import wait_until

TIMEOUT_S = 20

pytestmark = pytest.mark.usefixtures("worker")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the task `guard` tells that it runs, and is released at the latest when the test ends."""
    yield tmp_path
    (tmp_path / "release").touch()


def test_result_comes_back_over_rpc() -> None:
    assert add.delay(2, 3).get(timeout=TIMEOUT_S) == 5


def test_many_results_come_back_each_to_its_own_call() -> None:
    results = [add.delay(number, number) for number in range(50)]
    assert [result.get(timeout=TIMEOUT_S) for result in results] == [2 * number for number in range(50)]


def test_exception_of_a_task_is_raised_by_get() -> None:
    result = divide.delay(1, 0)
    with pytest.raises(ZeroDivisionError):
        result.get(timeout=TIMEOUT_S)
    assert result.state == "FAILURE"


def test_group_gathers_the_results_of_its_tasks() -> None:
    assert group(add.s(number, 1) for number in range(10))().get(timeout=TIMEOUT_S) == list(range(1, 11))


def test_chain_hands_each_result_to_the_next_task() -> None:
    assert chain(add.s(1, 2), add.s(4), divide.s(2))().get(timeout=TIMEOUT_S) == 3.5


def test_map_and_chunks_run_many_calls_in_one_task() -> None:
    assert total.map([[1, 2], [3, 4]]).delay().get(timeout=TIMEOUT_S) == [3, 7]
    chunks = add.chunks(((n, n) for n in range(6)), 2).group()
    assert chunks.delay().get(timeout=TIMEOUT_S) == [[0, 2], [4, 6], [8, 10]]


def test_failing_task_is_retried_after_its_countdown() -> None:
    assert flaky.delay(failures=2).get(timeout=TIMEOUT_S) == 2


def test_task_that_fails_too_often_gives_up() -> None:
    with pytest.raises(ConnectionError, match="busy"):
        flaky.delay(failures=9).get(timeout=TIMEOUT_S)


def test_task_with_a_countdown_runs_later_and_one_that_expired_is_revoked() -> None:
    assert add.apply_async((1, 1), countdown=0.3).get(timeout=TIMEOUT_S) == 2
    with pytest.raises(TaskRevokedError):
        add.apply_async((1, 1), countdown=0.2, expires=0.1).get(timeout=TIMEOUT_S)


def test_states_of_a_task_reach_its_caller_before_its_result(folder: Path) -> None:
    states: list[str] = []

    def on_message(meta: dict[str, Any]) -> None:
        states.append(meta["status"])
        (folder / "release").touch()

    assert guard.delay(str(folder)).get(timeout=TIMEOUT_S, on_message=on_message) is False
    assert states == ["STARTED", "SUCCESS"]


def test_tasks_are_routed_to_several_queues_by_their_keys(app: Celery, worker: Worker) -> None:
    queues = [unique_name("mail"), unique_name("video")]
    for queue in queues:
        [reply] = app.control.add_consumer(queue, destination=[worker.name], reply=True, timeout=TIMEOUT_S)
        assert "ok" in reply[worker.name]
    for queue in queues:
        assert arrival.apply_async(queue=queue).get(timeout=TIMEOUT_S)["key"] == queue
    for queue in queues:
        app.control.cancel_consumer(queue, destination=[worker.name], reply=True, timeout=TIMEOUT_S)
    # A worker answers first, and then does what it was asked to do.
    wait_until(lambda: active_queues(app, worker) == [app.conf.task_default_queue])


def active_queues(app: Celery, worker: Worker) -> list[str]:
    [active] = app.control.inspect(destination=[worker.name], timeout=TIMEOUT_S, limit=1).active_queues().values()
    return [queue["name"] for queue in active]


def test_worker_answers_ping_and_inspect(app: Celery, worker: Worker) -> None:
    assert app.control.ping(destination=[worker.name], timeout=TIMEOUT_S) == [{worker.name: {"ok": "pong"}}]
    inspect = app.control.inspect(destination=[worker.name], timeout=TIMEOUT_S)
    assert add.name in inspect.registered()[worker.name]
    assert inspect.stats()[worker.name]["pool"]["max-concurrency"] == 2


def test_broadcast_ping_finds_the_worker(app: Celery, worker: Worker) -> None:
    assert {worker.name: {"ok": "pong"}} in app.control.ping(timeout=TIMEOUT_S, limit=1)


def test_inspect_shows_running_and_scheduled_tasks(app: Celery, worker: Worker, folder: Path) -> None:
    running = guard.delay(str(folder))
    scheduled = add.apply_async((1, 1), countdown=600)
    inspect = app.control.inspect(destination=[worker.name], timeout=TIMEOUT_S)
    wait_until(lambda: [task["id"] for task in inspect.active()[worker.name]] == [running.id], timeout_s=TIMEOUT_S)
    wait_until(
        lambda: [entry["request"]["id"] for entry in inspect.scheduled()[worker.name]] == [scheduled.id],
        timeout_s=TIMEOUT_S,
    )
    app.control.revoke(scheduled.id, destination=[worker.name], reply=True, timeout=TIMEOUT_S)
    (folder / "release").touch()
    assert running.get(timeout=TIMEOUT_S) is False


def test_revoked_task_does_not_run(app: Celery, worker: Worker) -> None:
    result = add.apply_async((1, 1), countdown=0.5)
    [reply] = app.control.revoke(result.id, destination=[worker.name], reply=True, timeout=TIMEOUT_S)
    assert "ok" in reply[worker.name]
    with pytest.raises(TaskRevokedError):
        result.get(timeout=TIMEOUT_S)


def test_running_task_is_terminated(app: Celery, worker: Worker, folder: Path) -> None:
    result = guard.delay(str(folder))
    wait_until(lambda: list(folder.glob("running-*")), timeout_s=TIMEOUT_S)
    app.control.revoke(result.id, terminate=True, destination=[worker.name], reply=True, timeout=TIMEOUT_S)
    with pytest.raises(TaskRevokedError):
        result.get(timeout=TIMEOUT_S)


def test_events_tell_the_life_of_a_task(app: Celery) -> None:
    seen: list[str] = []
    ready, result = threading.Event(), AsyncResult(unique_name("watched"), app=app)

    def note(event: dict[str, Any]) -> None:
        if event.get("uuid") == result.id:
            seen.append(event["type"])
            receiver.should_stop = event["type"] == "task-succeeded"

    with app.connection_for_read() as connection:
        receiver = app.events.Receiver(connection, handlers={"*": note})
        original = receiver.on_consume_ready

        def on_consume_ready(*arguments: Any, **options: Any) -> None:
            original(*arguments, **options)
            ready.set()

        receiver.on_consume_ready = on_consume_ready
        capture = threading.Thread(
            target=receiver.capture, kwargs={"limit": None, "timeout": TIMEOUT_S, "wakeup": False}
        )
        capture.start()
        assert ready.wait(TIMEOUT_S)
        add.apply_async((1, 1), task_id=result.id)
        capture.join(TIMEOUT_S)
    assert seen == ["task-received", "task-started", "task-succeeded"]


def test_task_of_a_killed_worker_is_redelivered_to_another(
    app: Celery, broker: BrokerProcess, worker: Worker, folder: Path
) -> None:
    queue = unique_name("late")
    victim = Worker(broker.url, folder, queue, "--pool=solo", "--without-mingle", "--without-gossip")
    try:
        victim.wait_ready()
        result = guard.apply_async((str(folder),), queue=queue)
        wait_until(lambda: list(folder.glob("running-*")), timeout_s=TIMEOUT_S)
    finally:
        victim.kill()
    (folder / "release").touch()
    app.control.add_consumer(queue, destination=[worker.name], reply=True, timeout=TIMEOUT_S)
    assert result.get(timeout=TIMEOUT_S) is True
    app.control.cancel_consumer(queue, destination=[worker.name], reply=True, timeout=TIMEOUT_S)
