"""The x- arguments of queues: their comparison, and the texts of refusals."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.wire import Field, Table

TWO_VALUES: dict[str, tuple[Any, Any]] = {
    "x-expires": (3600000, 1800000),
    "x-message-ttl": (60000, 30000),
    "x-dead-letter-exchange": ("amq.fanout", "amq.direct"),
    "x-max-length": (10, 20),
    "x-max-length-bytes": (10, 20),
    "x-max-priority": (5, 6),
    "x-overflow": ("drop-head", "reject-publish"),
    "x-queue-mode": ("default", "lazy"),
    "x-queue-version": (1, 2),
    "x-single-active-consumer": (True, False),
}


def _declare_each(lab: Lab, name: str, *values: Any) -> None:
    """Declare a queue with each value of an argument, each on a new channel, and delete it."""
    connection = lab.connect()
    for value in values:
        channel = connection.channel()
        channel.call(Queue.Declare, queue=lab.name("q"), arguments={name: value})
        if channel.is_open:
            channel.ask(Queue.Delete, queue=lab.name("q"))


def _declare_in_turn(lab: Lab, *tables: Table) -> None:
    """Declare one queue with each of these arguments in turn."""
    connection = lab.connect()
    for arguments in tables:
        connection.channel().call(Queue.Declare, queue=lab.name("q"), arguments=arguments)


@scenario
def a_missing_or_additional_argument_is_reported(lab: Lab) -> None:
    connection = lab.connect()
    for name, (value, _) in TWO_VALUES.items():
        without, with_it = lab.name("without-" + name), lab.name("with-" + name)
        with lab.transcript.muted():
            connection.channel().declare(without)
            connection.channel().call(Queue.Declare, queue=with_it, arguments={name: value})
        connection.channel().call(Queue.Declare, queue=without, arguments={name: value})
        connection.channel().call(Queue.Declare, queue=with_it)


@scenario
def an_argument_with_another_value_is_reported(lab: Lab) -> None:
    connection = lab.connect()
    for name, (value, other) in TWO_VALUES.items():
        q = lab.name(name)
        with lab.transcript.muted():
            connection.channel().call(Queue.Declare, queue=q, arguments={name: value})
        connection.channel().call(Queue.Declare, queue=q, arguments={name: value})
        connection.channel().call(Queue.Declare, queue=q, arguments={name: other})
        connection.channel().call(Queue.Declare, queue=q, arguments={name: None})


@scenario
def the_first_differing_argument_is_reported(lab: Lab) -> None:
    names = ["x-message-ttl", "x-expires", "x-max-length", "x-single-active-consumer", "x-dead-letter-exchange"]
    arguments = {name: TWO_VALUES[name][0] for name in names}
    connection = lab.connect()
    connection.channel().declare(lab.name("q"))
    while arguments:
        connection.channel().call(Queue.Declare, queue=lab.name("q"), arguments=arguments)
        del arguments[names.pop()]


@scenario
def the_first_differing_argument_does_not_depend_on_the_order_given(lab: Lab) -> None:
    pairs = [("x-max-length", 10), ("x-message-ttl", 60000)]
    connection = lab.connect()
    connection.channel().declare(lab.name("q"))
    connection.channel().call(Queue.Declare, queue=lab.name("q"), arguments=pairs)
    connection.channel().call(Queue.Declare, queue=lab.name("q"), arguments=pairs[::-1])


@scenario
def a_number_is_equal_whatever_its_tag(lab: Lab) -> None:
    _declare_in_turn(lab, *({"x-max-length": Field(tag, 10)} for tag in "IlbsiuB"))


@scenario
def a_number_is_not_equal_to_its_text(lab: Lab) -> None:
    _declare_in_turn(lab, {"x-message-ttl": 10}, {"x-message-ttl": "10"})


@scenario
def unknown_arguments_are_not_compared(lab: Lab) -> None:
    _declare_in_turn(lab, {"x-unknown": 1, "other": "a"}, {"x-unknown": 2}, {})


@scenario
def the_order_of_arguments_does_not_matter(lab: Lab) -> None:
    pairs = [("x-max-length", 10), ("x-message-ttl", 60000)]
    _declare_in_turn(lab, pairs, pairs[::-1])


@scenario
def a_message_ttl_must_be_a_number_from_0(lab: Lab) -> None:
    values = (0, 1, -1, "60000", "abc", 1.5, True, None, Field("l", 2**33), Field("l", 315360000001), Field("T", 5))
    _declare_each(lab, "x-message-ttl", *values)


@scenario
def expires_must_be_a_number_above_0(lab: Lab) -> None:
    _declare_each(lab, "x-expires", 1000, 0, -1, "1000", 1000.0, True, Field("l", 2**33), Field("l", 315360000001))


@scenario
def lengths_must_be_numbers_from_0(lab: Lab) -> None:
    for name in ("x-max-length", "x-max-length-bytes"):
        _declare_each(lab, name, 0, 1, -1, "1", 1.0, Field("l", 2**40), False)


@scenario
def max_priority_must_be_a_number_up_to_255(lab: Lab) -> None:
    _declare_each(lab, "x-max-priority", 0, 1, 255, 256, -1, "5", 5.0, Field("B", 5), True)


@scenario
def a_dead_letter_exchange_must_be_a_string(lab: Lab) -> None:
    _declare_each(lab, "x-dead-letter-exchange", "", "missing", 1, True, Field("x", b"amq.direct"), None)


@scenario
def a_dead_letter_routing_key_needs_an_exchange(lab: Lab) -> None:
    _declare_in_turn(lab, {"x-dead-letter-routing-key": "k"})
    _declare_in_turn(lab, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": 1})
    _declare_in_turn(lab, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "k"})


@scenario
def overflow_must_be_known(lab: Lab) -> None:
    _declare_each(lab, "x-overflow", "drop-head", "reject-publish", "reject-publish-dlx", "nonsense", "", 1)


@scenario
def single_active_consumer_must_be_a_boolean(lab: Lab) -> None:
    _declare_each(lab, "x-single-active-consumer", True, False, 1, "true")


@scenario
def the_queue_type_must_be_known(lab: Lab) -> None:
    _declare_each(lab, "x-queue-type", "classic", "nonsense", 1)


@scenario
def the_queue_type_classic_is_the_default_and_equal_to_none(lab: Lab) -> None:
    _declare_in_turn(lab, {}, {"x-queue-type": "classic"}, {})


@scenario
def the_queue_mode_must_be_known(lab: Lab) -> None:
    _declare_each(lab, "x-queue-mode", "default", "lazy", "nonsense", 1)


@scenario
def the_queue_version_must_be_known(lab: Lab) -> None:
    _declare_each(lab, "x-queue-version", 1, 2, 3, 0, "2")


@scenario
def arguments_of_other_queue_types_are_refused(lab: Lab) -> None:
    connection = lab.connect()
    for name, value in (
        ("x-delivery-limit", 5),
        ("x-quorum-initial-group-size", 1),
        ("x-max-in-memory-length", 1),
        ("x-dead-letter-strategy", "at-most-once"),
        ("x-max-age", "1D"),
        ("x-stream-max-segment-size-bytes", 1000),
        ("x-initial-cluster-size", 1),
    ):
        connection.channel().call(Queue.Declare, queue=lab.name("q"), arguments={name: value})


@scenario
def a_classic_queue_may_have_a_leader_locator(lab: Lab) -> None:
    _declare_each(lab, "x-queue-leader-locator", "client-local")


@scenario
def a_classic_queue_may_have_a_consumer_timeout(lab: Lab) -> None:
    _declare_each(lab, "x-consumer-timeout", 10000)


@scenario
def an_argument_is_checked_before_the_name(lab: Lab) -> None:
    lab.channel().call(Queue.Declare, queue="amq.foo", arguments={"x-expires": 0})


@scenario
def an_argument_given_twice(lab: Lab) -> None:
    _declare_in_turn(lab, [("x-max-length", 1), ("x-max-length", 2)], {"x-max-length": 1}, {"x-max-length": 2})


@scenario
def the_queue_type_is_checked_first(lab: Lab) -> None:
    lab.channel().call(
        Queue.Declare, queue=lab.name("q"), arguments={"x-expires": 0, "x-max-age": 3, "x-queue-type": "nonsense"}
    )


@scenario
def known_arguments_of_a_queue_type_are_checked_before_unknown_ones(lab: Lab) -> None:
    connection = lab.connect()
    for arguments in (
        {"x-max-age": "1D", "x-expires": 0, "x-delivery-limit": "many"},
        {"x-dead-letter-strategy": "nonsense", "x-overflow": "nonsense"},
        {"x-max-age": "1D", "x-delivery-limit": "many", "x-max-in-memory-length": -1},
        {"x-quorum-initial-group-size": 0, "x-dead-letter-strategy": "nonsense"},
    ):
        connection.channel().call(Queue.Declare, queue=lab.name("q"), arguments=arguments)


@scenario
def the_value_of_an_argument_of_another_queue_type_does_not_matter(lab: Lab) -> None:
    for name in ("x-delivery-limit", "x-dead-letter-strategy", "x-max-in-memory-bytes", "x-max-age"):
        _declare_each(lab, name, -1, "nonsense", True)


@scenario
def arguments_of_other_queue_types_are_not_compared(lab: Lab) -> None:
    _declare_in_turn(lab, {}, {"x-delivery-limit": 5}, {"x-max-in-memory-length": 1}, {"x-dead-letter-strategy": "a"})


@scenario
def an_argument_of_any_type_is_shown_where_it_is_not_equivalent(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue(durable=True)
    values = (None, True, 2.0, 0.1, 1e300, Field("f", 0.1), Field("D", (2, 314)), Field("T", 5), b"a", Field("b", -1))
    for value in (*values, "", "ü", {"a": None}, [None, False, {"c": b"d"}], {}, []):
        connection.channel().call(Queue.Declare, queue=q, durable=True, arguments={"x-expires": value})
