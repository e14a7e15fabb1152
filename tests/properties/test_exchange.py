"""Header matching and routing against their definitions."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from amqp_broker.amqp import fields
from amqp_broker.amqp.fields import Byte, Float32, Long, Timestamp
from amqp_broker.broker.exchanges.exchange import Exchange
from amqp_broker.broker.exchanges.headers import header_matcher
from amqp_broker.broker.exchanges.types import EXCHANGE_TYPES
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import new_queue, new_vhost
from tests.properties.generators import examples
from tests.properties.test_topic import matches

KEYS = st.sampled_from(["a", "b", "x-a", "x-b", "x"])
SCALARS = [None, True, False, 0, 1, Byte(1), Long(1), Timestamp(1), 1.0, Float32(1.0), "1", b"1", ""]
NESTED = [[], [1], [True], [1.0], {}, {"a": 1}, {"a": True}, {"a": Byte(1)}]
VALUES: st.SearchStrategy[Any] = st.sampled_from([*SCALARS, *NESTED])
HEADERS = st.dictionaries(KEYS, VALUES, max_size=5)


def erlang(value: Any) -> Any:
    """A value as Erlang compares it: no type tag outside, and all of them inside of arrays and tables."""
    match value:
        case bool() | None:
            return "atom", value
        case float():
            return "float", value
        case int():
            return "integer", int(value)
        case str():
            return "binary", value.encode()
        case bytes():
            return "binary", value
        case list():
            return "list", [(fields.type_name(item), erlang(item)) for item in value]
        case dict():
            return "table", [(key, fields.type_name(item), erlang(item)) for key, item in value.items()]
    raise TypeError(value)


def is_wanted(x_match: str, arguments: fields.Table, headers: fields.Table) -> bool:
    verdicts = []
    for key, value in arguments.items():
        if key == "x-match" or (key.startswith("x-") and not x_match.endswith("-with-x")):
            continue
        if key not in headers:
            verdicts.append(False)
        else:
            verdicts.append(value is None or erlang(value) == erlang(headers[key]))
    return any(verdicts) if x_match.startswith("any") else all(verdicts)


@settings(max_examples=examples(5))
@given(st.sampled_from([None, "all", "any", "all-with-x", "any-with-x"]), HEADERS, HEADERS, st.booleans())
def test_headers_match_by_definition(
    x_match: str | None, wanted: fields.Table, headers: fields.Table, is_superset: bool
) -> None:
    arguments = wanted if x_match is None else {"x-match": x_match, **wanted}
    if is_superset:
        headers = {**headers, **wanted}
    assert header_matcher(arguments)(headers) == is_wanted(x_match or "all", arguments, headers)


def destinations_of(exchange: Exchange, key: str) -> set[Any]:
    """Where a message goes next, by the meaning of the exchange's type (headers are not looked at)."""
    found = set()
    for binding in exchange.bindings.values():
        bound_key = binding.routing_key
        match exchange.type:
            case "direct":
                is_match = bound_key == key
            case "topic":
                is_match = matches(bound_key.split("."), key.split("."))
            case _:
                is_match = True
        if is_match:
            found.add(binding.destination)
    return found


def reached(vhost: VHost, exchange: Exchange, key: str, seen: set[Exchange]) -> set[str]:
    if exchange in seen:
        return set()
    seen.add(exchange)
    names: set[str] = set()
    destinations = destinations_of(exchange, key)
    for destination in destinations:
        names |= reached(vhost, destination, key, seen) if isinstance(destination, Exchange) else {destination.name}
    if not destinations and exchange.alternate:
        names |= reached(vhost, vhost.exchanges[exchange.alternate], key, seen)
    return names


EXCHANGES = ["x0", "x1", "x2", "x3"]


@settings(max_examples=examples(2))
@given(
    st.lists(st.sampled_from(["direct", "fanout", "topic"]), min_size=4, max_size=4),
    st.lists(st.sampled_from([None, *EXCHANGES]), min_size=4, max_size=4),
    st.lists(
        st.tuples(
            st.sampled_from(EXCHANGES), st.sampled_from([*EXCHANGES, "q0", "q1"]), st.sampled_from(["a", "b", "#"])
        ),
        max_size=12,
    ),
    st.data(),
)
def test_routing_reaches_what_can_be_reached(
    kinds: list[str], alternates: list[str | None], bindings: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    vhost = new_vhost()
    for name, kind, alternate in zip(EXCHANGES, kinds, alternates, strict=True):
        arguments = {} if alternate is None else {"alternate-exchange": alternate}
        vhost.exchanges[name] = EXCHANGE_TYPES[kind]("/", name, arguments=arguments)
    for name in ("q0", "q1"):
        new_queue(vhost, name)
    for source, target, key in bindings:
        vhost.bind(vhost.exchanges[source], vhost.exchanges.get(target) or vhost.queues[target], key, {})
    for source, target, key in data.draw(st.lists(st.sampled_from(bindings), unique=True)) if bindings else ():
        binding = vhost.exchanges[source].binding(vhost.exchanges.get(target) or vhost.queues[target], key, {})
        if binding is not None:
            vhost.unbind(binding)
    for key in ("a", "b"):
        queues, _ = vhost.route(vhost.exchanges["x0"], (key,), {}, None)
        assert sorted(queue.name for queue in queues) == sorted(reached(vhost, vhost.exchanges["x0"], key, set()))
