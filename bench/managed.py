"""The cost and the speed of management, measured on new processes with management, as users run them."""

from __future__ import annotations

import base64
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread

from bench.benchmarks import Row, Sample
from bench.generator import Load, LoadError, run_load
from bench.side_by_side import LONG_REPEATS, SETTLE_S, Effort, Figures, Say, memory_bytes, warm_up
from compat.brokers import AmqpBroker
from compat.oracles.rabbitmq import RabbitMQ

Managed = AmqpBroker | RabbitMQ
MANAGED: dict[str, Callable[[Path], Managed]] = {
    "amqp-broker": AmqpBroker,
    "rabbitmq": lambda folder: RabbitMQ(folder, plugins=("rabbitmq_management", "rabbitmq_prometheus")),
}
# The broker's own tool pings.
TOOLS = {"amqp-broker": "diagnostics", "rabbitmq": "rabbitmq-diagnostics"}

PINGS = 3
REQUESTS = 9
POLL_S = 1.0
AUTHORIZATION = {"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
# A thousand queues with a message each.
QUEUES = Load(consumers=0, queues=1000, messages=1000, spread=True, prefix="listed", keep=True)
# Some seconds of messages, with a few requests meanwhile.
SCRAPED = {"amqp-broker": Load(messages=2_000_000), "rabbitmq": Load(messages=400_000)}


def measure_managed(
    rows: Iterable[Row], brokers: Iterable[str], effort: Effort, folder: Path, figures: Figures, say: Say
) -> None:
    """Add the figures of these brokers."""
    wanted = {row.name: row for row in rows if row.is_managed}
    for repeat in range(effort.repeats if wanted else 0):
        for name in brokers:
            if repeat == LONG_REPEATS:
                wanted.pop("scraped", None)
            broker = MANAGED[name](folder / f"{name}-managed-{repeat}")
            try:
                for row, value in _measure(wanted, name, broker, effort):
                    figures.add(row, name, Sample(value))
                    say(f"{name}: {row.title}: {row.unit.text(value)}")
            except (LoadError, OSError) as error:
                figures.failures.append(f"management, {name}: {error}")
            finally:
                broker.kill()


def _measure(rows: Mapping[str, Row], name: str, broker: Managed, effort: Effort) -> Iterator[tuple[Row, float]]:
    started = time.monotonic()
    broker.start()
    ready_s = time.monotonic() - started
    if "ready" in rows:
        yield rows["ready"], ready_s
    time.sleep(SETTLE_S)
    if "idle" in rows:
        yield rows["idle"], memory_bytes(broker.pid) / 1e6
    if "ping" in rows:
        yield rows["ping"], statistics.median(_ping_ms(broker, TOOLS[name]) for _ in range(PINGS))
    if rows.keys() & {"queues-list", "scraped"}:
        run_load(QUEUES, broker, broker.pid)
        time.sleep(SETTLE_S)
    if "queues-list" in rows:
        yield rows["queues-list"], statistics.median(_list_ms(broker) for _ in range(REQUESTS))
    if "scraped" in rows:
        yield rows["scraped"], _share_left(broker, effort.cut(SCRAPED[name]))


def _ping_ms(broker: Managed, tool: str) -> float:
    started = time.monotonic()
    done = broker.run(tool, "ping")
    if done.returncode:
        raise LoadError(f"{tool} ping: {done.stderr.strip()}")
    return (time.monotonic() - started) * 1000


def _list_ms(broker: Managed) -> float:
    started = time.monotonic()
    _get(broker.host, broker.management_port, "/api/queues")
    return (time.monotonic() - started) * 1000


def _share_left(broker: Managed, load: Load) -> float:
    """Return the share of the rate that is left beside requests.

    It is computed from the CPU per message, since rates vary by more.
    """
    warm_up(broker)
    before = run_load(load, broker, broker.pid).broker_cpu_us_per_message
    with _polling(broker):
        beside = run_load(load, broker, broker.pid).broker_cpu_us_per_message
    after = run_load(load, broker, broker.pid).broker_cpu_us_per_message
    return (before + after) / 2 / beside


@contextmanager
def _polling(broker: Managed) -> Iterator[None]:
    """Request metrics and the overview each second in the background. Raise OSError at the end if a request failed."""
    ended, errors = Event(), list[OSError]()

    def poll() -> None:
        while not ended.wait(POLL_S):
            try:
                _get(broker.host, broker.prometheus_port, "/metrics")
                _get(broker.host, broker.management_port, "/api/overview")
            except OSError as error:
                errors.append(error)

    thread = Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if errors:
        raise errors[0]


def _get(host: str, port: int, path: str) -> bytes:
    connection = HTTPConnection(host, port, timeout=60)
    try:
        connection.request("GET", path, headers=AUTHORIZATION)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise OSError(f"GET {path}: {response.status} {response.reason}")
    return body
