"""The form of a declaration: metrics in families, which share their objects and labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.management.node.node import Node

GAUGE: Final = "gauge"
COUNTER: Final = "counter"
UNTYPED: Final = "untyped"


class Scope(NamedTuple):
    """The subject of a scrape: a broker on its node, some vhosts or (None) all, and the endpoint's name.

    `consumer_count` is that of all vhosts.
    """

    broker: Broker
    node: Node
    vhosts: Collection[str] | None
    endpoint: str
    consumer_count: int


# Yields None where others may be served, so that anything may change in between.
Objects: TypeAlias = Callable[[Scope], Iterable[tuple[tuple[str, ...], Any] | None]]


class Metric(NamedTuple):
    """A number of each object of a family; `value(object)` is None for an object without it.

    Releases of RabbitMQ from `since` on and before `until` have it. RabbitMQ sums up those with `is_summed`.
    """

    name: str
    type: str
    help: str
    value: Callable[[Any], float | None]
    since: tuple[int, int] = (3, 0)
    until: tuple[int, int] = (99, 0)
    is_summed: bool = True


class Family(NamedTuple):
    """Metrics of the same objects; `objects(scope)` yields the values of the labels and the object itself."""

    name: str
    labels: tuple[str, ...]
    objects: Objects
    metrics: tuple[Metric, ...]

    def metrics_of(self, scope: Scope) -> list[Metric]:
        """Return the metrics that the imitated release has."""
        release = scope.broker.profile.release
        return [metric for metric in self.metrics if metric.since <= release < metric.until]


def label_writer(names: tuple[str, ...]) -> Callable[[tuple[str, ...]], str]:
    """Return a function that writes the values of labels in braces; without labels the text is empty."""
    template = ",".join(f'{name}="%s"' for name in names)
    template = f"{{{template}}}" if names else ""
    return lambda values: template % tuple(map(escaped, values))


def escaped(value: str) -> str:
    """Return the value of a label with quotes, backslashes and line ends escaped."""
    if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return value
    text = value.encode("utf-8", "replace").decode()
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
