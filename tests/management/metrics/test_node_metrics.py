from __future__ import annotations

import pytest

from amqp_broker.management.metrics.declarations import COUNTER
from amqp_broker.management.metrics.node_metrics import GLOBAL_FAMILIES, IDENTITY_FAMILIES, NODE_FAMILIES
from amqp_broker.settings.profiles import PROFILES

METRICS = [metric for family in (*NODE_FAMILIES, *GLOBAL_FAMILIES, *IDENTITY_FAMILIES) for metric in family.metrics]


@pytest.mark.parametrize("compat", PROFILES)
def test_each_release_has_a_metric_once(compat: str) -> None:
    release = PROFILES[compat].release
    names = [metric.name for metric in METRICS if metric.since <= release < metric.until]
    assert len(names) == len(set(names))


def test_the_name_of_a_counter_ends_with_total() -> None:
    assert [one.name for one in METRICS if one.name.endswith("_total") is not (one.type == COUNTER)] == []
