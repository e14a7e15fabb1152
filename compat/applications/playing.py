"""Plays an application at a broker. The cases are about jobs, and about what the broker refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pika

from compat.applications.application import Application
from compat.applications.running import Program, digest, running, url
from compat.brokers import BrokerProcess
from compat.waiting import wait_until

JOBS, JOBS_OF_KILL, SMALL = 50, 200, 10
# A little less than RabbitMQ's largest message since 4.0, and a text that is too large with anything around it.
LARGE, TOO_LARGE = 15_000_000, 16 * 1024 * 1024
# Frameworks wait before they connect again, some of them for longer each time.
WORK_S = 90.0


@dataclass(frozen=True)
class Stage:
    """An application that is built in a folder, and a broker for it; logs are written to `logs`."""

    application: Application
    built: Path
    broker: BrokerProcess
    logs: Path

    def run(self, *words: object, broker_url: str = "") -> AbstractContextManager[Program]:
        return running(self.application, self.built, self.logs, broker_url or url(self.broker), *words)

    def without_queue(self) -> None:
        """Delete the queue of the jobs."""
        with pika.BlockingConnection(pika.URLParameters(url(self.broker, vhost="%2F"))) as connection:
            connection.channel().queue_delete(self.application.queue)

    def refusal(self, program: Program) -> str:
        """Wait until the program says why it cannot work. Return what it says, without its broker's port."""
        return program.wait_until_seen(self.application.refusal).replace(str(self.broker.port), "PORT")


def jobs(stage: Stage) -> str:
    """Each job is done once."""
    with stage.run("serve") as worker, stage.run("submit", 1, JOBS, SMALL) as sender:
        worker.wait_for("ready")
        assert sender.end(WORK_S) == 0, sender.output
        wait_until(lambda: len(worker.numbers("done")) == JOBS, WORK_S)
        return _done(worker, SMALL)


def a_killed_broker(stage: Stage) -> str:
    """Each job that was accepted is done, although the broker is killed in the middle of the work."""
    wanted, accepted = set(range(1, JOBS_OF_KILL + 1)), set[int]()
    with stage.run("serve") as worker:
        worker.wait_for("ready")
        stage.broker.write_metadata()
        with stage.run("submit", 1, JOBS_OF_KILL, SMALL) as sender:
            wait_until(lambda: len(worker.numbers("done")) >= JOBS_OF_KILL // 5, WORK_S)
            stage.broker.kill()
            stage.broker.start()
            accepted |= _accepted(sender, wanted)
        # A sender that gave up is started again, as its operator would do.
        if missing := wanted - accepted:
            first = min(missing)
            with stage.run("submit", first, JOBS_OF_KILL - first + 1, SMALL) as sender:
                assert _accepted(sender, missing) >= missing, sender.output
        wait_until(lambda: worker.numbers("done") == wanted, WORK_S)
    return "all done"


def _accepted(sender: Program, wanted: set[int]) -> set[int]:
    """Return the jobs that were accepted, when these are, or when the sender has given up.

    A sender that has lost a connection may be done and not end: AiiDA's waits for it for minutes.
    """
    wait_until(lambda: sender.has_ended or sender.numbers("accepted") >= wanted, WORK_S)
    return sender.numbers("accepted")


def a_large_job(stage: Stage) -> str:
    with stage.run("serve") as worker, stage.run("submit", 1, 1, LARGE) as sender:
        worker.wait_for("ready")
        assert sender.end(WORK_S) == 0, sender.output[-4000:]
        wait_until(lambda: worker.numbers("done") == {1}, WORK_S)
        return _done(worker, LARGE)


def a_job_that_is_too_large(stage: Stage) -> str:
    with stage.run("serve") as worker:
        # In some frameworks, only the worker declares the queue.
        worker.wait_for("ready")
        with stage.run("submit", 1, 1, TOO_LARGE) as sender:
            return stage.refusal(sender)


def a_wrong_password(stage: Stage) -> str:
    with stage.run("serve", broker_url=url(stage.broker, password="wrong")) as worker:
        return stage.refusal(worker)


def a_missing_vhost(stage: Stage) -> str:
    with stage.run("serve", broker_url=url(stage.broker, vhost="missing")) as worker:
        return stage.refusal(worker)


def a_queue_with_other_arguments(stage: Stage) -> str:
    """The queue exists, with another argument than the application declares it with."""
    with pika.BlockingConnection(pika.URLParameters(url(stage.broker, vhost="%2F"))) as connection:
        arguments = {"x-max-length": 1000}
        connection.channel().queue_declare(stage.application.queue, durable=True, arguments=arguments)
    with stage.run("serve") as worker:
        return stage.refusal(worker)


def _done(worker: Program, size: int) -> str:
    done = re.findall(r"^done (\d+) (\w+)", worker.output, re.MULTILINE)
    assert {text for _, text in done} == {digest(size)}
    return f"{len(done)} done"


CASES: tuple[Callable[[Stage], str], ...] = (
    jobs,
    a_large_job,
    a_job_that_is_too_large,
    a_killed_broker,
    a_wrong_password,
    a_missing_vhost,
    a_queue_with_other_arguments,
)


def play(stage: Stage) -> dict[str, str]:
    """Play all cases; return the outcome of each."""
    outcomes = {}
    for case in CASES:
        if case is a_job_that_is_too_large and not stage.application.sends_texts:
            continue
        stage.without_queue()
        try:
            outcomes[case.__name__] = case(stage)
        except AssertionError as error:
            raise AssertionError(f"{case.__name__} at {stage.broker.name}: {error}") from error
    return outcomes
