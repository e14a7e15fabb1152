from __future__ import annotations

from amqp_broker.management.metrics.declarations import COUNTER
from amqp_broker.management.metrics.object_metrics import CLUSTER_FAMILIES, OBJECT_FAMILIES

METRICS = [metric for family in (*OBJECT_FAMILIES, *CLUSTER_FAMILIES) for metric in family.metrics]


def test_each_metric_is_declared_once() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))


def test_the_name_of_a_counter_ends_with_total() -> None:
    assert [one.name for one in METRICS if one.name.endswith("_total") is not (one.type == COUNTER)] == []
