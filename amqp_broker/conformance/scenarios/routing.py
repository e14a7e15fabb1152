"""Routing: each exchange type, alternate exchanges, and exchanges bound to exchanges."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Exchange, Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.wire import Field, Table


def _show_routes(channel: Channel, queues: list[str]) -> None:
    """Pull all queues empty, which shows what each has got."""
    channel.sync(*queues)
    for queue in queues:
        channel.drain(queue)


def _topic(lab: Lab, pattern: str, *keys: str) -> None:
    """Which of these keys reach a queue bound with the pattern; the others are returned."""
    channel = lab.channel()
    x, q = lab.name("x"), lab.queue()
    with lab.transcript.muted():
        channel.exchange(x, "topic")
    channel.bind(q, x, pattern)
    for key in keys:
        channel.publish(exchange=x, routing_key=key, mandatory=True)
    _show_routes(channel, [q])


def _headers(lab: Lab, binding: Table, *messages: Table | None) -> None:
    """Which of these header tables reach a queue bound with the arguments; the others are returned."""
    channel = lab.channel()
    x, q = lab.name("x"), lab.queue()
    with lab.transcript.muted():
        channel.exchange(x, "headers")
    channel.bind(q, x, arguments=binding)
    for headers in messages:
        properties: dict[str, Any] = {} if headers is None else {"headers": headers}
        channel.publish(exchange=x, mandatory=True, **properties)
    _show_routes(channel, [q])


@scenario
def a_direct_exchange_compares_whole_keys(lab: Lab) -> None:
    channel = lab.channel()
    x, queues = lab.name("x"), [lab.queue("one"), lab.queue("two")]
    channel.exchange(x, "direct")
    channel.bind(queues[0], x, "k")
    channel.bind(queues[1], x, "k")
    channel.bind(queues[1], x, "K")
    for key in ("k", "K", "k.", ""):
        channel.publish(key.encode(), exchange=x, routing_key=key, mandatory=True)
    _show_routes(channel, queues)


@scenario
def a_fanout_exchange_ignores_keys(lab: Lab) -> None:
    channel = lab.channel()
    x, queues = lab.name("x"), [lab.queue("one"), lab.queue("two")]
    channel.exchange(x, "fanout")
    channel.bind(queues[0], x, "k")
    channel.bind(queues[0], x, "another")
    channel.bind(queues[1], x)
    channel.publish(b"all", exchange=x, routing_key="nobody's")
    _show_routes(channel, queues)


@scenario
def a_queue_gets_one_copy_whatever_number_of_bindings_match(lab: Lab) -> None:
    channel = lab.channel()
    x, q = lab.name("x"), lab.queue()
    channel.exchange(x, "topic")
    for pattern in ("#", "*.b", "a.b", "a.#"):
        channel.bind(q, x, pattern)
    channel.publish(b"once", exchange=x, routing_key="a.b")
    _show_routes(channel, [q])


@scenario
def the_default_exchange_routes_by_queue_name(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.publish(b"there", routing_key=q, mandatory=True)
    channel.publish(b"lost", routing_key=lab.name("missing"), mandatory=True)
    channel.publish(b"lost too", routing_key="", mandatory=True)
    _show_routes(channel, [q])


# --- topic


@scenario
def a_star_is_exactly_one_word(lab: Lab) -> None:
    _topic(lab, "*", "a", "", "a.b", ".", "*")


@scenario
def a_hash_is_any_number_of_words(lab: Lab) -> None:
    _topic(lab, "#", "", "a", "a.b", ".", "..")


@scenario
def a_hash_in_the_middle_may_be_nothing(lab: Lab) -> None:
    _topic(lab, "a.#.b", "a.b", "a.x.b", "a.x.y.b", "a..b", "ab", "a.b.c", "a.b.b")


@scenario
def a_hash_at_the_end_may_be_nothing(lab: Lab) -> None:
    _topic(lab, "a.#", "a", "a.", "a.b", "a.b.c", "ab", "b.a")


@scenario
def a_hash_at_the_front_may_be_nothing(lab: Lab) -> None:
    _topic(lab, "#.a", "a", ".a", "b.a", "b.b.a", "a.b")


@scenario
def two_hashes_are_as_good_as_one(lab: Lab) -> None:
    _topic(lab, "#.#", "", "a", "a.b")


@scenario
def a_star_and_a_hash_are_at_least_one_word(lab: Lab) -> None:
    _topic(lab, "*.#", "", "a", "a.b", ".")


@scenario
def empty_words_are_words(lab: Lab) -> None:
    _topic(lab, "a..b", "a..b", "a.b", "a.x.b")


@scenario
def a_star_matches_an_empty_word(lab: Lab) -> None:
    _topic(lab, "*.*", ".", "a.", ".a", "a.a", "a", "")


@scenario
def an_empty_pattern_matches_an_empty_key(lab: Lab) -> None:
    _topic(lab, "", "", "a", ".")


@scenario
def wildcards_inside_a_word_are_letters(lab: Lab) -> None:
    _topic(lab, "a*.b#", "a*.b#", "ax.bx", "a.b")


@scenario
def topics_are_case_sensitive_and_any_utf_8(lab: Lab) -> None:
    _topic(lab, "É.*", "É.x", "é.x", "É.日本")


# --- headers


@scenario
def all_headers_must_match_by_default(lab: Lab) -> None:
    _headers(lab, {"a": 1, "b": "x"}, {"a": 1, "b": "x", "c": True}, {"a": 1}, {"a": 1, "b": "y"}, {}, None)


@scenario
def any_header_may_match(lab: Lab) -> None:
    _headers(lab, {"x-match": "any", "a": 1, "b": "x"}, {"a": 1}, {"b": "x", "a": 2}, {"a": 2, "b": "y"}, {}, None)


@scenario
def a_binding_without_headers_matches_all_under_all(lab: Lab) -> None:
    _headers(lab, {"x-match": "all"}, {"a": 1}, {}, None)


@scenario
def a_binding_without_headers_matches_nothing_under_any(lab: Lab) -> None:
    _headers(lab, {"x-match": "any"}, {"a": 1}, {}, None)


@scenario
def a_binding_without_arguments_matches_all(lab: Lab) -> None:
    _headers(lab, {}, {"a": 1}, None)


@scenario
def headers_with_x_are_ignored_by_all_and_any(lab: Lab) -> None:
    _headers(lab, {"x-match": "all", "x-a": 1, "b": 2}, {"b": 2}, {"x-a": 1}, {"x-a": 1, "b": 2})
    _headers(lab, {"x-match": "any", "x-a": 1}, {"x-a": 1}, {})


@scenario
def all_with_x_compares_headers_with_x(lab: Lab) -> None:
    _headers(lab, {"x-match": "all-with-x", "x-a": 1, "b": 2}, {"b": 2}, {"x-a": 1, "b": 2})


@scenario
def any_with_x_compares_headers_with_x(lab: Lab) -> None:
    _headers(lab, {"x-match": "any-with-x", "x-a": 1, "b": 2}, {"b": 2}, {"x-a": 1}, {"x-a": 2})


@scenario
def a_void_in_the_binding_asks_for_presence(lab: Lab) -> None:
    _headers(lab, {"a": None}, {"a": 1}, {"a": "x"}, {"a": None}, {"b": 1})


@scenario
def a_void_in_the_message_matches_only_a_void(lab: Lab) -> None:
    _headers(lab, {"a": 1}, {"a": None}, {"a": 1})


@scenario
def the_type_tag_of_a_number_does_not_matter(lab: Lab) -> None:
    _headers(lab, {"a": Field("I", 1)}, *({"a": Field(tag, 1)} for tag in "bBsuIil"))


@scenario
def a_number_is_neither_a_boolean_nor_a_text(lab: Lab) -> None:
    _headers(lab, {"a": 1}, {"a": True}, {"a": "1"})


@scenario
def a_whole_float_is_a_whole_number(lab: Lab) -> None:
    _headers(lab, {"a": 1}, {"a": 1.0}, {"a": 1.5})


@scenario
def strings_and_bytes_are_equal_headers(lab: Lab) -> None:
    _headers(lab, {"a": "x"}, {"a": Field("x", b"x")}, {"a": "X"}, {"a": "x "})


@scenario
def tables_and_arrays_match_as_a_whole(lab: Lab) -> None:
    _headers(lab, {"a": {"k": 1}, "b": [1, "x"]}, {"a": {"k": 1}, "b": [1, "x"]}, {"a": {"k": 1}, "b": ["x", 1]})


@scenario
def floats_and_times_match(lab: Lab) -> None:
    binding = {"a": 1.5, "b": Field("T", 1000), "c": Field("D", (2, 314))}
    _headers(lab, binding, binding, {**binding, "a": Field("f", 1.5)}, {**binding, "c": Field("D", (2, 315))})


@scenario
def a_time_is_a_number(lab: Lab) -> None:
    _headers(lab, {"a": Field("T", 1000)}, {"a": Field("l", 1000)}, {"a": Field("l", 1001)})


@scenario
def a_header_given_twice(lab: Lab) -> None:
    _headers(lab, {"a": 1}, [("a", 1), ("a", 2)], [("a", 2), ("a", 1)])


@scenario
def an_invalid_x_match_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    for value in ("foo", "ALL", 1, True, ""):
        connection.channel().bind(q, "amq.headers", arguments={"x-match": value})


@scenario
def an_invalid_x_match_is_accepted_by_other_types(lab: Lab) -> None:
    lab.channel().bind(lab.queue(), "amq.direct", arguments={"x-match": "foo"})


# --- alternate exchange


@scenario
def what_finds_no_queue_goes_to_the_alternate_exchange(lab: Lab) -> None:
    channel = lab.channel()
    x, alternate, queues = lab.name("x"), lab.name("alternate"), [lab.queue("one"), lab.queue("rest")]
    channel.exchange(alternate, "fanout")
    channel.exchange(x, "direct", arguments={"alternate-exchange": alternate})
    channel.bind(queues[0], x, "k")
    channel.bind(queues[1], alternate)
    for key in ("k", "other"):
        channel.publish(key.encode(), exchange=x, routing_key=key, mandatory=True)
    _show_routes(channel, queues)


@scenario
def alternate_exchanges_are_followed_in_a_chain(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.exchange(lab.name("x3"), "fanout")
    channel.exchange(lab.name("x2"), "direct", arguments={"alternate-exchange": lab.name("x3")})
    channel.exchange(lab.name("x1"), "direct", arguments={"alternate-exchange": lab.name("x2")})
    channel.bind(q, lab.name("x3"))
    channel.publish(b"far", exchange=lab.name("x1"), routing_key="k", mandatory=True)
    _show_routes(channel, [q])


@scenario
def a_missing_alternate_exchange_makes_a_message_unroutable(lab: Lab) -> None:
    channel = lab.channel()
    channel.exchange(lab.name("x"), "direct", arguments={"alternate-exchange": lab.name("missing")})
    channel.publish(b"lost", exchange=lab.name("x"), routing_key="k", mandatory=True)
    channel.sync()


@scenario
def alternate_exchanges_in_a_cycle_make_a_message_unroutable(lab: Lab) -> None:
    channel = lab.channel()
    channel.exchange(lab.name("x"), "direct", arguments={"alternate-exchange": lab.name("y")})
    channel.exchange(lab.name("y"), "direct", arguments={"alternate-exchange": lab.name("x")})
    channel.publish(b"lost", exchange=lab.name("x"), routing_key="k", mandatory=True)
    channel.sync()


@scenario
def the_default_exchange_is_not_an_alternate_exchange(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.exchange(lab.name("x"), "direct", arguments={"alternate-exchange": ""})
    channel.publish(b"by name", exchange=lab.name("x"), routing_key=q, mandatory=True)
    _show_routes(channel, [q])


@scenario
def an_internal_exchange_may_be_an_alternate_exchange(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.exchange(lab.name("inner"), "fanout", internal=True)
    channel.exchange(lab.name("x"), "direct", arguments={"alternate-exchange": lab.name("inner")})
    channel.bind(q, lab.name("inner"))
    channel.publish(b"inside", exchange=lab.name("x"), routing_key="k", mandatory=True)
    _show_routes(channel, [q])


# --- exchange to exchange


@scenario
def a_message_passes_from_exchange_to_exchange(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.exchange(lab.name("x"), "topic")
    channel.exchange(lab.name("y"), "direct")
    channel.call(Exchange.Bind, source=lab.name("x"), destination=lab.name("y"), routing_key="a.*")
    channel.bind(q, lab.name("y"), "a.b")
    for key in ("a.b", "a.c"):
        channel.publish(key.encode(), exchange=lab.name("x"), routing_key=key, mandatory=True)
    _show_routes(channel, [q])


@scenario
def exchanges_bound_in_a_loop_give_a_queue_one_copy(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    for name, other in (("x", "y"), ("y", "x")):
        channel.exchange(lab.name(name), "fanout")
        with lab.transcript.muted():
            channel.exchange(lab.name(other), "fanout")
        channel.call(Exchange.Bind, source=lab.name(name), destination=lab.name(other))
    channel.call(Exchange.Bind, source=lab.name("x"), destination=lab.name("x"))
    channel.bind(q, lab.name("x"))
    channel.bind(q, lab.name("y"))
    channel.publish(b"once", exchange=lab.name("x"))
    _show_routes(channel, [q])


@scenario
def the_alternate_exchange_of_an_inner_exchange_is_used(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.exchange(lab.name("rest"), "fanout")
    channel.bind(q, lab.name("rest"))
    channel.exchange(lab.name("y"), "direct", arguments={"alternate-exchange": lab.name("rest")})
    channel.exchange(lab.name("x"), "fanout")
    channel.call(Exchange.Bind, source=lab.name("x"), destination=lab.name("y"))
    channel.publish(b"rest", exchange=lab.name("x"), routing_key="k", mandatory=True)
    _show_routes(channel, [q])


@scenario
def an_internal_exchange_takes_messages_from_exchanges_only(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.exchange(lab.name("inner"), "fanout", internal=True)
    channel.bind(q, lab.name("inner"))
    channel.call(Exchange.Bind, source="amq.direct", destination=lab.name("inner"), routing_key=lab.name("k"))
    channel.publish(b"in", exchange="amq.direct", routing_key=lab.name("k"))
    _show_routes(channel, [q])
    channel.publish(b"out", exchange=lab.name("inner"))
    channel.expect()


@scenario
def a_deleted_exchange_takes_its_bindings_with_it(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.exchange(lab.name("x"), "fanout")
    channel.bind(q, lab.name("x"))
    channel.call(Exchange.Delete, exchange=lab.name("x"))
    channel.exchange(lab.name("x"), "fanout")
    channel.publish(b"lost", exchange=lab.name("x"), mandatory=True)
    channel.call(Queue.Delete, queue=q)
