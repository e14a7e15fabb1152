"""The text for Prometheus, in RabbitMQ's three forms: sums, a line per object, chosen families.

It is written here and not by a library, which would make an object for each number of each queue: that would stop the
broker for a hundred milliseconds with two thousand queues. Source: RabbitMQ, "Monitoring with Prometheus".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, TypeAlias

from msgspec import Struct

from amqp_broker.broker.scheduling.portions import Steps, popping
from amqp_broker.management.http.answers import Answer
from amqp_broker.management.http.auth import PUBLIC
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request
from amqp_broker.management.metrics.declarations import Family, Metric, Objects, Scope, label_writer
from amqp_broker.management.metrics.memory_metrics import MEMORY_FAMILIES
from amqp_broker.management.metrics.node_metrics import (
    GLOBAL_FAMILIES,
    IDENTITY_FAMILIES,
    NODE_FAMILIES,
    PROCESS_FAMILIES,
)
from amqp_broker.management.metrics.object_metrics import CLUSTER_FAMILIES, OBJECT_FAMILIES
from amqp_broker.management.metrics.queue_metrics import UNSUMMED_FAMILIES

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PREFIX: Final = "rabbitmq_"
DETAILED_PREFIX: Final = "rabbitmq_detailed_"
CLUSTER_PREFIX: Final = "rabbitmq_cluster_"
# Lines that are joined at once.
BLOCK_LINES: Final = 500

# Lines of the text; None where others may be served.
Lines: TypeAlias = Iterator[str | None]


def summed(request: Request) -> Steps[bytes]:
    """Return all families, with the numbers of objects summed up."""
    scope = yield from _scope(request, "aggregated")
    node = _all(PREFIX, (*NODE_FAMILIES, *GLOBAL_FAMILIES), scope)
    return (yield from _text(node, _sums(scope), _all("", PROCESS_FAMILIES, scope), _identity(scope)))


def per_object(request: Request) -> Steps[bytes]:
    """Return all families, with the numbers of each object."""
    scope = yield from _scope(request, "per-object")
    node = _all(PREFIX, (*NODE_FAMILIES, *GLOBAL_FAMILIES), scope)
    objects = _all(PREFIX, (*OBJECT_FAMILIES, *UNSUMMED_FAMILIES), scope)
    return (yield from _text(node, objects, _all("", PROCESS_FAMILIES, scope), _identity(scope)))


def memory_breakdown(request: Request) -> Steps[bytes]:
    """Return the use of memory by category."""
    scope = yield from _scope(request, "memory-breakdown")
    return (yield from _text(_all(PREFIX, MEMORY_FAMILIES, scope), _identity(scope)))


def detailed(request: Request, names: Collection[str], vhosts: Collection[str] | None) -> Steps[bytes]:
    """Return the families with these names, with the numbers of each object in some vhosts or in all."""
    scope = yield from _scope(request, "detailed", vhosts)
    objects, node, cluster = (
        [family for family in families if family.name in names]
        for families in ((*OBJECT_FAMILIES, *UNSUMMED_FAMILIES), NODE_FAMILIES, CLUSTER_FAMILIES)
    )
    return (
        yield from _text(
            _all(DETAILED_PREFIX, objects, scope),
            _all(DETAILED_PREFIX, node, scope),
            _all(CLUSTER_PREFIX, cluster, scope),
            _identity(scope),
        )
    )


def _scope(request: Request, endpoint: str, vhosts: Collection[str] | None = None) -> Steps[Scope]:
    broker, consumer_count = request.broker, 0
    yield from broker.collecting_counts()
    for queue in popping(deque(queue for vhost in broker.vhosts.values() for queue in vhost.queues.values())):
        consumer_count += len(queue.consumers)
        yield
    return Scope(broker, request.node, vhosts, endpoint, consumer_count)


def _text(*parts: Lines) -> Steps[bytes]:
    blocks, lines = [], list[str]()
    for part in parts:
        for line in part:
            if line is not None:
                lines.append(line)
            if len(lines) >= BLOCK_LINES:
                blocks.append(_block(lines))
                lines = []
            yield
    return b"".join([*blocks, _block(lines)])


def _block(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _identity(scope: Scope) -> Lines:
    return _all(PREFIX, IDENTITY_FAMILIES, scope)


def _all(prefix: str, families: Iterable[Family], scope: Scope) -> Lines:
    """Yield the lines of families; those without objects have a type and a help text all the same."""
    known: dict[Objects, list[tuple[str, Any]]] = {}
    for family in families:
        metrics = family.metrics_of(scope)
        if not metrics:
            continue
        objects = known.get(family.objects)
        if objects is None:
            write = label_writer(family.labels)
            objects = known[family.objects] = []
            for found in family.objects(scope):
                if found is not None:
                    objects.append((write(found[0]), found[1]))
                yield None
        for metric in metrics:
            yield from _head(prefix, metric)
            start, value_of = prefix + metric.name, metric.value
            for labels, subject in objects:
                value = value_of(subject)
                if value is not None:
                    yield f"{start}{labels} {value if value == value else 'NaN'}"
    for objects in known.values():
        yield from _freeing(objects)


def _sums(scope: Scope) -> Lines:
    for family in OBJECT_FAMILIES:
        objects = []
        for found in family.objects(scope):
            if found is not None:
                objects.append(found[1])
            yield None
        for metric in family.metrics_of(scope):
            yield from _head(PREFIX, metric)
            if metric.is_summed:
                total: float = 0
                for subject in objects:
                    total += metric.value(subject) or 0
                    yield None
                yield f"{PREFIX}{metric.name} {total}"
        yield from _freeing(objects)


def _freeing(objects: list[Any]) -> Iterator[None]:
    """Free what was made of thousands of objects in steps."""
    while objects:
        objects.pop()
        yield


def _head(prefix: str, metric: Metric) -> tuple[str, str]:
    name = prefix + metric.name
    return f"# TYPE {name} {metric.type}", f"# HELP {name} {metric.help}"


# HTTP


class FamilyQuery(Struct):
    """The families and the vhosts to show, each of which may be given several times."""

    family: str = ""
    vhost: str = ""


def _answer(text: bytes) -> Answer:
    return Answer(200, text, {"Content-Type": CONTENT_TYPE})


def get_summed(request: Request) -> Steps[Answer]:
    """Return each metric summed up over its objects."""
    return _answer((yield from summed(request)))


def get_per_object(request: Request) -> Steps[Answer]:
    """Return each metric for each object."""
    return _answer((yield from per_object(request)))


def get_memory_breakdown(request: Request) -> Steps[Answer]:
    """Return the use of memory by category."""
    return _answer((yield from memory_breakdown(request)))


def get_detailed(request: Request) -> Steps[Answer]:
    """Return chosen families for each object, of some vhosts or of all."""
    vhosts = request.all_of("vhost")
    return _answer((yield from detailed(request, request.all_of("family"), vhosts or None)))


def endpoints(is_per_object: bool, path: str = "/metrics") -> Endpoints:
    """Return the endpoints of Prometheus's listener; with `is_per_object`, those of each object are at `path` as well.

    `path` does not end with a slash; it is empty for the root.
    """
    declared = Endpoints()
    declared.on(f"GET {path or '/'}", tag=PUBLIC)(get_per_object if is_per_object else get_summed)
    declared.on(f"GET {path}/per-object", tag=PUBLIC)(get_per_object)
    declared.on(f"GET {path}/memory-breakdown", tag=PUBLIC)(get_memory_breakdown)
    declared.on(f"GET {path}/detailed", tag=PUBLIC, query=FamilyQuery)(get_detailed)
    return declared
