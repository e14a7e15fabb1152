from __future__ import annotations

from amqp_broker.management.metric_families import COUNTER, FAMILIES, labels


def test_each_metric_stands_in_one_family() -> None:
    names = [metric.name for family in FAMILIES for metric in family.metrics]
    assert len(names) == len(set(names))


def test_counters_say_so_in_their_names() -> None:
    metrics = [metric for family in FAMILIES for metric in family.metrics]
    assert [one.name for one in metrics if one.name.endswith("_total") is not (one.kind == COUNTER)] == []


def test_labels_are_escaped() -> None:
    assert labels(queue='a"b\\c\nd', vhost="/") == r'queue="a\"b\\c\nd",vhost="/"'


def test_what_is_no_utf_8_does_no_harm() -> None:
    assert labels(queue="\udcff") == 'queue="?"'
