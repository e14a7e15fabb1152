from __future__ import annotations

from amqp_broker.broker.exchanges.choice import Choice
from tests.broker_parts import new_exchange, new_queue, new_vhost


def test_each_binding_has_a_number_and_exchanges_come_first() -> None:
    vhost, choice = new_vhost(), Choice()
    queue, exchange = new_queue(vhost, "a"), new_exchange(vhost, "z")
    for destination in (queue, exchange, queue):
        choice.add(destination)
    assert [choice.of(number) for number in range(4)] == [(exchange,), (queue,), (queue,), (exchange,)]
    choice.remove(queue)
    assert [choice.of(number) for number in range(3)] == [(exchange,), (queue,), (exchange,)]
    choice.remove(exchange)
    choice.remove(queue)
    assert (len(choice), choice.of(1)) == (0, ())


def test_the_bindings_of_a_deleted_destination_may_be_removed_after_it_was_left_out() -> None:
    vhost, choice = new_vhost(), Choice()
    queue, other = new_queue(vhost, "a"), new_queue(vhost, "b")
    for destination in (queue, queue, other):
        choice.add(destination)
    queue.is_deleted = True
    assert [choice.of(number) for number in range(3)] == [(other,), (other,), (other,)]
    for _ in range(2):
        choice.remove(queue)
    assert choice.of(0) == (other,)
