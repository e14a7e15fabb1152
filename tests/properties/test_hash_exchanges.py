"""Consistent hashing: each queue gets what its weight says, and little moves when one comes or goes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from amqp_broker.broker.exchanges.exchange import Exchange
from tests.broker_parts import bind, new_exchange, new_queue, new_vhost
from tests.properties.generators import any_octets, examples

KEYS = [f"key {number}" for number in range(2000)]
NAMES = st.lists(st.text("abcdefghijklmnop-.0123456789", min_size=1, max_size=12), min_size=2, max_size=8, unique=True)
WEIGHTS = st.integers(1, 20)


def exchange_with(weights: dict[str, int]) -> Exchange:
    vhost = new_vhost()
    exchange = new_exchange(vhost, "x", "x-consistent-hash")
    for name, weight in weights.items():
        bind(exchange, new_queue(vhost, name), vhost, str(weight))
    return exchange


def owners(exchange: Exchange, keys: list[str]) -> list[str]:
    return [next(iter(exchange.destinations([key], {}, None))).name for key in keys]


@settings(max_examples=examples(0.3))
@given(NAMES.flatmap(lambda names: st.fixed_dictionaries(dict.fromkeys(names, WEIGHTS))))
def test_each_queue_gets_what_its_weight_says(weights: dict[str, int]) -> None:
    found = owners(exchange_with(weights), KEYS)
    for name, weight in weights.items():
        share = weight / sum(weights.values())
        # Six standard deviations of a fair lot, which chance passes once in 500 million.
        assert abs(found.count(name) - share * len(KEYS)) < 6 * (share * (1 - share) * len(KEYS)) ** 0.5 + 1


@settings(max_examples=examples(0.3))
@given(NAMES.flatmap(lambda names: st.fixed_dictionaries(dict.fromkeys(names, WEIGHTS))), st.data())
def test_only_what_one_queue_wins_or_loses_moves(weights: dict[str, int], data: st.DataObject) -> None:
    changed = data.draw(st.sampled_from(sorted(weights)))
    with_it = owners(exchange_with(weights), KEYS)
    without = owners(exchange_with({name: weight for name, weight in weights.items() if name != changed}), KEYS)
    assert [(one, other) for one, other in zip(with_it, without, strict=True) if one not in (changed, other)] == []


@settings(max_examples=examples(0.3))
@given(NAMES.flatmap(lambda names: st.fixed_dictionaries(dict.fromkeys(names, WEIGHTS))), st.data())
def test_the_order_of_binding_does_not_matter(weights: dict[str, int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(sorted(weights)))
    keys = data.draw(st.lists(any_octets(30), min_size=1))
    assert owners(exchange_with(weights), keys) == owners(exchange_with({name: weights[name] for name in order}), keys)
