from __future__ import annotations

from amqp_broker.management.metrics.declarations import label_writer


def test_the_values_of_labels_are_escaped() -> None:
    assert label_writer(("queue", "vhost"))(('a"b\\c\nd', "/")) == r'{queue="a\"b\\c\nd",vhost="/"}'


def test_octets_that_are_not_utf_8_are_replaced() -> None:
    assert label_writer(("queue",))(("\udcff",)) == '{queue="?"}'
