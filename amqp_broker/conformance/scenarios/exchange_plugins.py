"""The exchange types of RabbitMQ's plugins. Random or hashed choices are compared by message counts."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Confirm, Exchange, Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel
from amqp_broker.conformance.wire import Field, Table

HASH, MODULUS, RANDOM, HISTORY = "x-consistent-hash", "x-modulus-hash", "x-random", "x-recent-history"
KINDS = (HASH, MODULUS, RANDOM, HISTORY)
MANY = 400


def _exchange(lab: Lab, channel: Channel, kind: str, arguments: Table = ()) -> str:
    """Declare an exchange without recording it."""
    with lab.transcript.muted():
        channel.exchange(lab.name("x"), kind, arguments=arguments)
    return lab.name("x")


def _shares(lab: Lab, channel: Channel, queues: list[str], *properties: dict[str, Any], key: str = "{}") -> list[int]:
    """Return the number of messages in each queue after many publishes with these properties in turn; `{}` in the key
    is a running number.
    """
    with lab.transcript.muted():
        channel.call(Confirm.Select)
        for number in range(MANY):
            given = properties[number % len(properties)] if properties else {}
            channel.publish(exchange=lab.name("x"), routing_key=key.format(number), **given)
        channel.confirms(1, MANY)
        counts: list[int] = [channel.call(Queue.Purge, queue=queue)["message_count"] for queue in queues]
    return counts


def _tell(lab: Lab, what: str, is_so: bool) -> None:
    lab.transcript.record(f"{what}: {'yes' if is_so else 'no'}")


@scenario
def an_exchange_of_a_plugin_is_declared_again_with_another_type(lab: Lab) -> None:
    connection = lab.connect()
    _exchange(lab, connection.channel(), HISTORY)
    for kind in ("fanout", RANDOM):
        connection.channel().exchange(lab.name("x"), kind)


@scenario
def an_exchange_of_each_plugin_is_declared_and_deleted(lab: Lab) -> None:
    channel = lab.channel()
    for kind in KINDS:
        channel.exchange(lab.name(kind), kind)
        channel.exchange(lab.name(kind), kind, arguments={"hash-property": "nonsense", "x-recent-history-length": 0})
        channel.call(Exchange.Delete, exchange=lab.name(kind))


@scenario
def an_exchange_of_each_plugin_routes_to_its_only_queue(lab: Lab) -> None:
    channel = lab.channel()
    for kind in KINDS:
        x, q = lab.name(kind), lab.queue(f"q.{kind}")
        channel.exchange(x, kind)
        channel.publish(
            b"lost", exchange=x, routing_key="k", mandatory=True, headers={"x-recent-history-no-store": True}
        )
        channel.bind(q, x, "1")
        channel.publish(b"one", exchange=x, routing_key="k", mandatory=True)
        channel.publish(b"two", exchange=x, routing_key="k", headers={"CC": ["a", "b"]})
        channel.sync(q)
        channel.drain(q)


@scenario
def an_exchange_of_each_plugin_takes_dead_letters(lab: Lab) -> None:
    channel = lab.channel()
    for kind in KINDS:
        x, q = lab.name(kind), lab.queue(f"q.{kind}")
        dying = lab.queue(f"dying.{kind}", arguments={"x-dead-letter-exchange": x, "x-message-ttl": 0})
        channel.exchange(x, kind)
        channel.bind(q, x, "1")
        channel.publish(b"dead", routing_key=dying)
        channel.sync(dying, q)
        _tell(lab, "it is there", channel.get(q, no_ack=True).method is Basic.GetOk)


@scenario
def exchanges_of_plugins_are_bound_to_each_other(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    for kind in KINDS:
        channel.exchange(lab.name(kind), kind, arguments={"alternate-exchange": lab.name("rest")})
    for source, destination in ((HASH, RANDOM), (RANDOM, MODULUS), (MODULUS, HISTORY)):
        channel.call(Exchange.Bind, source=lab.name(source), destination=lab.name(destination), routing_key="1")
    channel.bind(q, lab.name(HISTORY))
    channel.publish(b"far", exchange=lab.name(HASH), routing_key="k", mandatory=True)
    channel.sync(q)
    channel.drain(q)


@scenario
def the_alternate_exchange_of_a_plugins_exchange_is_used(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.exchange(lab.name("rest"), "fanout")
    channel.bind(q, lab.name("rest"))
    for kind in KINDS:
        channel.exchange(lab.name(kind), kind, arguments={"alternate-exchange": lab.name("rest")})
        channel.publish(kind.encode(), exchange=lab.name(kind), routing_key="k", mandatory=True)
    channel.sync(q)
    channel.drain(q)


# --- consistent hash


@scenario
def what_a_consistent_hash_exchange_hashes_is_one_known_thing(lab: Lab) -> None:
    connection = lab.connect()
    for arguments in (
        {"hash-property": "type"},
        {"hash-property": ""},
        {"hash-header": "h", "hash-property": "message_id"},
        {"hash-header": "h", "hash-property": "type"},
        {"hash-header": ""},
        {"hash-property": "correlation_id"},
    ):
        connection.channel().exchange(lab.name("x"), HASH, arguments=arguments)


@scenario
def what_to_hash_is_named_by_a_string(lab: Lab) -> None:
    lab.channel().exchange(lab.name("x"), HASH, arguments={"hash-header": 1})


@scenario
def a_binding_of_a_consistent_hash_exchange_has_a_weight(lab: Lab) -> None:
    connection = lab.connect()
    q, x = lab.queue(), _exchange(lab, connection.channel(), HASH)
    for key in ("0", "-1", "", "abc", "1.5", " 1", "1_0", "#", "+5", "05", "10000"):
        connection.channel().bind(q, x, key)


@scenario
def a_weight_has_a_limit(lab: Lab) -> None:
    channel = lab.channel()
    channel.bind(lab.queue(), _exchange(lab, channel, HASH), "10001")


@scenario
def a_consistent_hash_follows_weights(lab: Lab) -> None:
    channel = lab.channel()
    x, queues = _exchange(lab, channel, HASH), [lab.queue("one"), lab.queue("three")]
    channel.bind(queues[0], x, "1")
    channel.bind(queues[1], x, "3")
    one, three = _shares(lab, channel, queues)
    _tell(lab, "all have come", one + three == MANY)
    _tell(lab, "three times as many", 1.5 < three / one < 6)


@scenario
def one_key_has_one_queue(lab: Lab) -> None:
    channel = lab.channel()
    x, queues = _exchange(lab, channel, HASH), [lab.queue(name) for name in ("one", "two", "three")]
    for queue in queues:
        channel.bind(queue, x, "1")
    lab.transcript.record(f"{sorted(_shares(lab, channel, queues, key='k'))}")


@scenario
def a_header_or_property_is_hashed_instead_of_the_key(lab: Lab) -> None:
    one = [{"headers": {"h": "one"}}]
    many = [{"headers": {"h": number}} for number in range(100)]
    lacking: list[dict[str, Any]] = [{}, {"headers": {"g": 1}}]
    for name, arguments, properties in (
        ("one header", {"hash-header": "h"}, one),
        ("many headers", {"hash-header": "h"}, many),
        ("lacking", {"hash-header": "h"}, lacking),
        ("one id", {"hash-property": "message_id"}, [{"message_id": "one"}]),
        ("many ids", {"hash-property": "message_id"}, [{"message_id": str(number)} for number in range(100)]),
        ("many ids", {"hash-property": "correlation_id"}, [{"correlation_id": str(number)} for number in range(100)]),
        ("many times", {"hash-property": "timestamp"}, [{"timestamp": number} for number in range(100)]),
        ("lacking", {"hash-property": "message_id"}, lacking),
    ):
        channel = lab.channel()
        channel.exchange(lab.name("x"), HASH, arguments=arguments)
        queues = [lab.queue("one"), lab.queue("two")]
        for queue in queues:
            channel.bind(queue, lab.name("x"), "1")
        counts = _shares(lab, channel, queues, *properties)
        _tell(lab, f"{name}: all have come", sum(counts) == MANY)
        _tell(lab, f"{name}: to one queue", 0 in counts)
        channel.call(Exchange.Delete, exchange=lab.name("x"))


@scenario
def a_second_weight_of_a_queue_counts_for_nothing_and_takes_it_out(lab: Lab) -> None:
    channel = lab.channel()
    x, queues = _exchange(lab, channel, HASH), [lab.queue("one"), lab.queue("two")]
    channel.bind(queues[0], x, "1")
    channel.bind(queues[0], x, "100")
    channel.bind(queues[1], x, "1")
    first, second = _shares(lab, channel, queues)
    _tell(lab, "about as many", 0.5 < first / second < 2)
    channel.call(Queue.Unbind, queue=queues[0], exchange=x, routing_key="100")
    channel = lab.channel()
    lab.transcript.record(f"{_shares(lab, channel, queues)}")


# --- modulus and random


@scenario
def a_modulus_or_random_exchange_counts_bindings(lab: Lab) -> None:
    for kind in (MODULUS, RANDOM):
        channel = lab.channel()
        x, queues = lab.name("x"), [lab.queue("one"), lab.queue("three")]
        channel.exchange(x, kind)
        channel.bind(queues[0], x)
        for key in ("a", "b", "c"):
            channel.bind(queues[1], x, key)
        one, three = _shares(lab, channel, queues, {}, {"headers": {"CC": ["a", "b"]}})
        _tell(lab, "all have come", one + three == MANY)
        _tell(lab, "three times as many", 1.5 < three / one < 6)
        channel.call(Exchange.Delete, exchange=x)


@scenario
def one_key_has_one_queue_by_modulus_and_many_by_chance(lab: Lab) -> None:
    for kind in (MODULUS, RANDOM):
        channel = lab.channel()
        x, queues = lab.name("x"), [lab.queue("one"), lab.queue("two")]
        channel.exchange(x, kind)
        for queue in queues:
            channel.bind(queue, x, "whatever")
        _tell(lab, "to one queue", 0 in _shares(lab, channel, queues, key="k"))
        channel.call(Exchange.Delete, exchange=x)


# --- recent history


@scenario
def the_length_of_a_recent_history_is_a_positive_integer(lab: Lab) -> None:
    connection = lab.connect()
    unsigned = [Field("i", 5), Field("B", 5), Field("u", 5)]
    for value in (0, -3, "5", 1.5, True, Field("V", None), ["a"], {"a": 1}, Field("T", 5), *unsigned, Field("b", 5)):
        connection.channel().exchange(lab.name("x"), HISTORY, arguments={"x-recent-history-length": value})


def _history(lab: Lab, channel: Channel, *bodies: bytes, **arguments: int) -> str:
    x = lab.name("x")
    table = {f"x-recent-history-{name}": value for name, value in arguments.items()}
    channel.exchange(x, HISTORY, arguments=table)
    for body in bodies:
        channel.publish(body, exchange=x, routing_key=f"key of {body.decode()}")
    return x


def _bound(lab: Lab, channel: Channel, name: str = "q", key: str = "") -> None:
    """Bind a queue, and show its messages."""
    q = lab.queue(name)
    channel.bind(q, lab.name("x"), key)
    channel.sync(q)
    channel.drain(q)


@scenario
def a_new_queue_gets_the_last_messages(lab: Lab) -> None:
    channel = lab.channel()
    _history(lab, channel, b"a", b"b", b"c", length=2)
    _bound(lab, channel)


@scenario
def twenty_messages_are_kept_by_default(lab: Lab) -> None:
    channel = lab.channel()
    _history(lab, channel, *[b"%d" % number for number in range(22)])
    _bound(lab, channel)


@scenario
def each_new_binding_repeats_the_history(lab: Lab) -> None:
    channel = lab.channel()
    _history(lab, channel, b"a")
    for key in ("", "", "other"):
        _bound(lab, channel, "q", key)


@scenario
def a_message_may_forbid_to_be_kept(lab: Lab) -> None:
    channel = lab.channel()
    x = _history(lab, channel)
    for body, value in ((b"a", True), (b"b", False), (b"c", "true"), (b"d", 1)):
        channel.publish(body, exchange=x, headers={"x-recent-history-no-store": value})
    _bound(lab, channel)


@scenario
def a_message_with_copies_is_kept_once(lab: Lab) -> None:
    channel = lab.channel()
    x = _history(lab, channel)
    channel.publish(b"a", exchange=x, headers={"CC": ["cc"], "BCC": ["bcc"]}, priority=3, message_id="m")
    _bound(lab, channel)


@scenario
def a_mandatory_message_for_the_history_alone_is_returned(lab: Lab) -> None:
    channel = lab.channel()
    x = _history(lab, channel)
    channel.publish(b"a", exchange=x, mandatory=True)
    channel.sync()
    _bound(lab, channel)


@scenario
def an_exchange_that_is_bound_gets_the_history_newest_first(lab: Lab) -> None:
    channel = lab.channel()
    x = _history(lab, channel, b"a", b"b")
    q, y = lab.queue(), lab.name("y")
    channel.exchange(y, "direct")
    channel.bind(q, y, "key of a")
    channel.bind(q, y, "key of b")
    channel.call(Exchange.Bind, source=x, destination=y)
    channel.sync(q)
    channel.drain(q)


@scenario
def an_exchange_that_is_bound_has_no_queue_for_the_history(lab: Lab) -> None:
    channel = lab.channel()
    x = _history(lab, channel, b"a")
    channel.exchange(lab.name("y"), "fanout")
    channel.call(Exchange.Bind, source=x, destination=lab.name("y"))


@scenario
def the_history_goes_with_the_exchange(lab: Lab) -> None:
    channel = lab.channel()
    x = _history(lab, channel, b"a")
    channel.call(Exchange.Delete, exchange=x)
    _history(lab, channel)
    _bound(lab, channel)
