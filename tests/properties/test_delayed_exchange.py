"""Delayed messages against the simplest model: a list that is sorted by when each is due."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from amqp_broker.broker.exchanges.delayed import DelayedExchange
from tests.broker_parts import bind, new_exchange, new_message, new_queue
from tests.peer import NOW, Lab
from tests.properties.generators import examples

# A delay, or how much time passes.
STEPS = st.lists(st.tuples(st.sampled_from(["delay", "advance"]), st.integers(1, 50)), max_size=60)


@settings(max_examples=examples(2))
@given(STEPS)
def test_messages_come_when_they_are_due_and_in_that_order(steps: list[tuple[str, int]]) -> None:
    lab = Lab()
    lab.broker.tick(NOW)
    exchange = new_exchange(lab.vhost, "x", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    assert isinstance(exchange, DelayedExchange)
    bind(exchange, new_queue(lab.vhost), lab.vhost)
    model: list[tuple[int, int]] = []
    for number, (step, amount) in enumerate(steps):
        if step == "delay":
            headers = {"x-delay": amount}
            lab.vhost.route(exchange, ["k"], headers, new_message(b"%d" % number, headers=headers))
            model.append((lab.broker.now + amount, number))
        else:
            lab.advance(amount)
            lab.broker.tick(lab.now)
        due = sorted(item for item in model if item[0] <= lab.now)
        assert [message.body for message in lab.vhost.queues["q"].messages()] == [b"%d" % number for _, number in due]
        assert [due_ms for due_ms, _ in exchange.delayed()] == sorted(item[0] for item in model if item[0] > lab.now)
        assert exchange.messages_delayed == len(model) - len(due)
