from __future__ import annotations

from amqp_broker.broker.counting.counters import CONFIRMED, DEAD_LETTERED
from amqp_broker.broker.queues.dead_letter_reasons import DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED


def test_each_reason_is_counted_by_the_node() -> None:
    assert {DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED, CONFIRMED} == {reason for _, _, reason in DEAD_LETTERED}
