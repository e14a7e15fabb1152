from __future__ import annotations

import pytest

from amqp_broker.management.metrics.declarations import COUNTER
from amqp_broker.management.metrics.object_metrics import CLUSTER_FAMILIES, OBJECT_FAMILIES
from amqp_broker.management.metrics.queue_metrics import UNSUMMED_FAMILIES
from amqp_broker.settings.profiles import PROFILES

METRICS = [metric for family in (*OBJECT_FAMILIES, *UNSUMMED_FAMILIES, *CLUSTER_FAMILIES) for metric in family.metrics]


@pytest.mark.parametrize("compat", PROFILES)
def test_each_release_has_a_metric_once(compat: str) -> None:
    release = PROFILES[compat].release
    names = [metric.name for metric in METRICS if metric.since <= release < metric.until]
    assert len(names) == len(set(names))


def test_the_name_of_a_counter_ends_with_total() -> None:
    wrong = [one.name for one in METRICS if one.name.endswith("_total") is not (one.type == COUNTER)]
    # RabbitMQ's name.
    assert wrong == ["stream_segments"]
