from __future__ import annotations

from amqp_broker.broker.queues import leaving_reasons
from amqp_broker.broker.queues.dead_letter_reasons import DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED


def test_no_reason_is_one_of_dead_letters_too() -> None:
    reasons = {value for name, value in vars(leaving_reasons).items() if name.isupper()}
    assert reasons.isdisjoint({DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED})
