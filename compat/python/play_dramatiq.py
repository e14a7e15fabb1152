"""dramatiq with its RabbitMQ broker: workers in this process."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dramatiq
import pika
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from protocol import CA_FILE, PATIENCE_S, TLS_URL, URL, WRONG_URL, ask, main, name

broker = RabbitmqBroker(url=URL, confirm_delivery=True, max_priority=10)
dramatiq.set_broker(broker)
done: list[Any] = []


@dramatiq.actor(queue_name=name("dramatiq"))
def note(value: Any) -> None:
    done.append(value)


@dramatiq.actor(queue_name=name("dramatiq"), max_retries=3, min_backoff=50, max_backoff=100)
def flaky(value: str) -> None:
    done.append(value)
    if done.count(value) < 3:
        raise RuntimeError("again")


@dramatiq.actor(queue_name=name("dramatiq"), max_retries=0)
def failing() -> None:
    raise RuntimeError("for ever")


@dramatiq.actor(queue_name=name("dramatiq-ordered"))
def ordered(value: int) -> None:
    done.append(value)


@contextmanager
def working(threads: int = 2) -> Iterator[None]:
    done.clear()
    worker = dramatiq.Worker(broker, worker_threads=threads, worker_timeout=100)
    worker.start()
    try:
        yield
    finally:
        worker.stop()


def wait(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + 2 * PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, f"only {done}"
        time.sleep(0.02)


def connect() -> None:
    with working():
        note.send("hello")
        wait(lambda: done == ["hello"])


def confirms() -> None:
    with working():
        for number in range(100):
            note.send(number)
        wait(lambda: sorted(done) == list(range(100)))


def requeue() -> None:
    with working():
        flaky.send("try")
        wait(lambda: done == ["try"] * 3)


def dead_letter() -> None:
    """A message that fails finally is rejected, and goes to the dead-letter queue (`.XQ`)."""
    with working():
        failing.send()
        wait(lambda: broker.get_queue_message_counts(name("dramatiq"))[2])


def ttl() -> None:
    with working():
        note.send_with_options(args=("later",), delay=200)
        wait(lambda: done == ["later"])


def priority() -> None:
    for number in (1, 5, 3):
        ordered.send_with_options(args=(number,), broker_priority=number)
    with working(threads=1):
        wait(lambda: len(done) == 3)
    assert done == [5, 3, 1], done


def large() -> None:
    with working():
        note.send("0123456789abcdef" * ((1 << 20) - 64))
        wait(lambda: done and len(done[0]) == (16 << 20) - 1024)


def tls() -> None:
    for authority in (CA_FILE, None):
        address = pika.URLParameters(TLS_URL)
        options = pika.SSLOptions(ssl.create_default_context(cafile=authority), "localhost")
        try:
            RabbitmqBroker(host=address.host, port=address.port, ssl_options=options).connection.close()
        except ssl.SSLCertVerificationError:
            assert authority is None
        else:
            assert authority, "connected without the authority"


def wrong_password() -> None:
    try:
        RabbitmqBroker(url=WRONG_URL).connection.close()
    except pika.exceptions.AMQPConnectionError as error:
        assert isinstance(error, pika.exceptions.ProbableAuthenticationError), repr(error)
    else:
        raise AssertionError("not refused")


def recovers(what: str) -> None:
    """Workers and the sender find back by themselves."""
    with working():
        note.send("before")
        wait(lambda: done == ["before"])
        ask(what)
        note.send("after")
        wait(lambda: done[-1] == "after")


def forced_close() -> None:
    recovers("CLOSE")


def reconnect() -> None:
    recovers("RESTART")


SCENARIOS = (
    connect, confirms, requeue, dead_letter, ttl, priority, large, tls, wrong_password, forced_close, reconnect,
)  # fmt: skip

main({scenario.__name__: scenario for scenario in SCENARIOS})
