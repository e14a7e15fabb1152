"""Both ends of each binding know it, whatever changes, and nothing outlives its owner."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from amqp_broker.broker.exchanges.exchange import Binding, Destination
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import new_exchange, new_queue, new_vhost
from tests.properties.generators import examples

EXCHANGES = ["x0", "x1", "x2", "x3"]
QUEUES = ["q0", "q1"]
KINDS = ["direct", "fanout", "headers", "topic"]


class Lab:
    """A vhost, and which of its exchanges were a source at some time."""

    def __init__(self) -> None:
        self.vhost: VHost = new_vhost()
        self.used: set[str] = set()

    def declare_exchange(self, number: int) -> None:
        name = EXCHANGES[number % 4]
        if name not in self.vhost.exchanges:
            new_exchange(self.vhost, name, KINDS[number // 4 % 4], is_auto_delete=number % 3 > 0)
            self.used.discard(name)

    def declare_queue(self, number: int) -> None:
        new_queue(self.vhost, QUEUES[number % 2])

    def bind(self, number: int) -> None:
        source = self.vhost.exchanges.get(EXCHANGES[number % 4])
        destination = self.destination(number // 4)
        if source is not None and destination is not None:
            self.vhost.bind(source, destination, "ab"[number // 24 % 2], {})
            self.used.add(source.name)

    def unbind(self, number: int) -> None:
        bindings = self.bindings()
        if bindings:
            self.vhost.unbind(bindings[number % len(bindings)])

    def delete_exchange(self, number: int) -> None:
        self.vhost.delete_exchange(EXCHANGES[number % 4], if_unused=False)

    def remove_queue(self, number: int) -> None:
        queue = self.vhost.queues.get(QUEUES[number % 2])
        if queue is not None:
            self.vhost.remove_queue(queue)

    def destination(self, number: int) -> Destination | None:
        name = [*EXCHANGES, *QUEUES][number % 6]
        return self.vhost.exchanges.get(name) or self.vhost.queues.get(name)

    def bindings(self) -> list[Binding]:
        return [binding for exchange in self.vhost.exchanges.values() for binding in exchange.bindings.values()]

    def check(self) -> None:
        vhost = self.vhost
        ends: list[Destination] = [*vhost.exchanges.values(), *vhost.queues.values()]
        incoming = [binding for end in ends for binding in end.incoming]
        assert set(self.bindings()) == set(incoming)
        assert len(incoming) == len(set(incoming))
        for binding in incoming:
            assert vhost.exchanges[binding.source.name] is binding.source
            assert binding.destination in ends
        for exchange in vhost.exchanges.values():
            assert exchange.bindings or not exchange.is_auto_delete or exchange.name not in self.used
            reached = {binding.destination for binding in exchange.bindings.values() if binding.routing_key == "a"}
            assert reached <= set(exchange.match("a", {}))
            assert set(exchange.match("a", {})) <= {binding.destination for binding in exchange.bindings.values()}


VERBS = [
    *[Lab.declare_exchange] * 3,
    Lab.declare_queue,
    *[Lab.bind] * 6,
    *[Lab.unbind] * 2,
    Lab.delete_exchange,
    Lab.remove_queue,
]
STEP = st.tuples(st.integers(0, len(VERBS) - 1), st.integers(0, 1000))


@settings(max_examples=examples(3))
@given(st.integers(1, 60).flatmap(lambda count: st.lists(STEP, min_size=count, max_size=count)))
def test_bindings_are_known_at_both_ends_and_auto_delete_exchanges_go_with_their_last(
    steps: list[tuple[int, int]],
) -> None:
    lab = Lab()
    for verb, number in steps:
        VERBS[verb](lab, number)
        lab.check()
