"""The cost and the speed of management, measured on new processes with management, as users run them."""

from __future__ import annotations

import base64
import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from threading import Event, Thread

from bench.generator import Load, LoadError, run_load
from bench.row import Row, Sample
from bench.side_by_side import SETTLE_S, Effort, Figures, Say, memory_bytes, warm_up
from bench.subjects import Managed, Subject

# A pause in seconds, and a request after it.
Request = tuple[float, Callable[[], object]]

PINGS = 3
REQUESTS = 9
POLL_S = 0.5
PAUSE_S = 0.01
# Queues that requests declare, list and delete beside a client at a fixed rate.
ADMINISTERED = 5000
BESIDE = Load(messages=20_000, rate=1000)
AUTHORIZATION = {"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
# A thousand queues with a message each.
QUEUES = Load(consumers=0, queues=1000, messages=1000, spread=True, prefix="listed", keep=True)
# Repetitions of rows that take long.
LONG_REPEATS = 3


def measure_managed(
    rows: Iterable[Row], subjects: Iterable[Subject], effort: Effort, folder: Path, figures: Figures, say: Say
) -> None:
    """Add the figures of the brokers that can be started with management."""
    wanted = {row.name: row for row in rows if row.is_managed}
    for repeat in range(effort.repeats if wanted else 0):
        if repeat == LONG_REPEATS:
            wanted.pop("scraped", None)
        for subject in subjects:
            if subject.make_managed is None:
                continue
            broker = subject.make_managed(folder / f"{subject.name}-managed-{repeat}".replace(" ", "-"))
            try:
                for row, value in _measure(wanted, subject, broker, effort):
                    figures.add(row, subject.name, Sample(value))
                    say(f"{subject.name}: {row.title}: {row.unit.text(value)}")
            except (LoadError, OSError) as error:
                figures.failures.append(f"management, {subject.name}: {error}")
            finally:
                broker.kill()


def _measure(rows: Mapping[str, Row], subject: Subject, broker: Managed, effort: Effort) -> Iterator[tuple[Row, float]]:
    started = time.monotonic()
    broker.start()
    ready_s = time.monotonic() - started
    if "ready" in rows:
        yield rows["ready"], ready_s
    time.sleep(SETTLE_S)
    if "idle" in rows:
        yield rows["idle"], memory_bytes(broker.pid) / 1e6
    if "ping" in rows:
        yield rows["ping"], statistics.median(_ping_ms(broker, subject.ping_tool) for _ in range(PINGS))
    if rows.keys() & {"queues-list", "scraped"}:
        run_load(QUEUES, broker, broker.pid)
        time.sleep(SETTLE_S)
    if "queues-list" in rows:
        yield rows["queues-list"], statistics.median(_list_ms(broker) for _ in range(REQUESTS))
    if "scraped" in rows:
        yield rows["scraped"], _share_left(broker, effort.cut(subject.scraped))
    if rows.keys() & {"administered", "administered-worst"}:
        with _repeating(_administration(broker, max(ADMINISTERED // effort.divisor, 1))):
            outcome = run_load(effort.cut(BESIDE), broker, broker.pid)
        for row, latency_us in ("administered", outcome.latency_p99_us), ("administered-worst", outcome.latency_max_us):
            assert latency_us is not None, "the rate is fixed"
            if row in rows:
                yield rows[row], latency_us / 1000


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
    with _repeating([(POLL_S, partial(_get, broker.host, *request)) for request in _polled(broker)]):
        beside = run_load(load, broker, broker.pid).broker_cpu_us_per_message
    after = run_load(load, broker, broker.pid).broker_cpu_us_per_message
    return (before + after) / 2 / beside


def _polled(broker: Managed) -> list[tuple[int, str]]:
    return [(broker.prometheus_port, "/metrics"), (broker.management_port, "/api/overview")]


def _administration(broker: Managed, count: int) -> list[Request]:
    """Return requests that declare, change, list and delete many queues of a vhost."""
    queues = [{"name": f"q{number}", "durable": True, "auto_delete": False, "arguments": {}} for number in range(count)]
    bindings = [
        {
            "source": "amq.direct",
            "destination": queue["name"],
            "destination_type": "queue",
            "routing_key": queue["name"],
            "arguments": {},
        }
        for queue in queues
    ]
    vhost, policy = "/api/vhosts/administered", "/api/policies/administered/p"
    changes = [
        ("PUT", vhost, {}),
        ("POST", "/api/definitions/administered", {"queues": queues, "bindings": bindings}),
        ("PUT", policy, {"pattern": ".*", "definition": {"max-length": 1000}}),
    ]
    lists = [("GET", f"/api/{noun}", None) for noun in ("overview", "queues", "consumers", "bindings", "definitions")]
    removals = [("DELETE", policy, None), ("DELETE", vhost, None)]
    ask = partial(_ask, broker.host, broker.management_port)
    requests = [partial(ask, path, method, value) for method, path, value in (*changes, *lists, *removals)]
    requests.insert(len(changes), partial(_ask, broker.host, broker.prometheus_port, "/metrics"))
    return [(PAUSE_S, request) for request in requests]


@contextmanager
def _repeating(requests: Sequence[Request]) -> Iterator[None]:
    """Make requests in turn in the background, each after its pause. Raise OSError at the end if one failed."""
    ended, errors = Event(), list[OSError]()

    def repeat() -> None:
        for pause_s, request in cycle(requests):
            if ended.wait(pause_s):
                return
            try:
                request()
            except OSError as error:
                errors.append(error)

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if errors:
        raise errors[0]


def _get(host: str, port: int, path: str) -> bytes:
    return _ask(host, port, path)


def _ask(host: str, port: int, path: str, method: str = "GET", value: object = None) -> bytes:
    """Return the body of an answer. Raise OSError for an error."""
    connection = HTTPConnection(host, port, timeout=300)
    try:
        body = None if value is None else json.dumps(value)
        connection.request(method, path, body, {**AUTHORIZATION, "Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status >= 300:
        raise OSError(f"{method} {path}: {response.status} {response.reason}")
    return answer
