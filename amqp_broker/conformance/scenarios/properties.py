"""Message properties: delivered unchanged, sometimes validated; CC and BCC are further routing keys."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.conformance import wire
from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.wire import Field

ALL_PROPERTIES: dict[str, Any] = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {"n": 1},
    "delivery_mode": 2,
    "priority": 9,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "60000",
    "message_id": "m",
    "timestamp": 1700000000,
    "message_type": "t",
    "user_id": "guest",
    "app_id": "a",
    "cluster_id": "l",
}
ALL_TAGS = [
    ("t", True),
    ("b", -1),
    ("B", 255),
    ("s", -2),
    ("u", 65535),
    ("I", -3),
    ("i", 4294967295),
    ("l", -4),
    ("f", 1.5),
    ("d", 2.5),
    ("D", (2, 314)),
    ("S", "text"),
    ("x", b"\x00\xff"),
    ("T", 1700000000),
    ("V", None),
    ("A", [1, "x", [], {}]),
    ("F", {"deep": {"deeper": None}}),
]


@scenario
def all_properties_come_back(lab: Lab) -> None:
    lab.channel().echo(lab.queue(), b"x", **ALL_PROPERTIES)


@scenario
def each_property_alone_comes_back(lab: Lab) -> None:
    channel = lab.channel()
    for name, value in ALL_PROPERTIES.items():
        channel.echo(lab.queue(), b"x", **{name: value})


@scenario
def empty_and_zero_properties_come_back(lab: Lab) -> None:
    zeros = {"content_type": "", "headers": {}, "priority": 0, "timestamp": 0, "message_id": ""}
    lab.channel().echo(lab.queue(), b"x", **zeros)


@scenario
def the_largest_properties_come_back(lab: Lab) -> None:
    lab.channel().echo(lab.queue(), b"x", priority=255, timestamp=2**64 - 1, app_id="é" * 127)


@scenario
def a_delivery_mode_may_be_unknown(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.call(Confirm.Select)
    channel.publish(b"x", routing_key=q, delivery_mode=3)
    if channel.expect(Basic.Ack).method is Basic.Ack:
        channel.get(q)


@scenario
def header_values_of_each_type_come_back(lab: Lab) -> None:
    headers = [(f"{number:02}", Field(tag, value)) for number, (tag, value) in enumerate(ALL_TAGS)]
    lab.channel().echo(lab.queue(), b"x", headers=headers)


@scenario
def headers_of_eighty_levels_come_back(lab: Lab) -> None:
    table: Any = 1
    array: Any = 1
    for _ in range(80):
        table, array = {"a": table}, [array]
    lab.channel().echo(lab.queue(), b"x", headers=[("array", array), ("table", table)])


@scenario
def a_message_and_a_queue_take_tables_of_two_thousand_levels(lab: Lab) -> None:
    channel = lab.channel()
    table = wire.longstr(b"")
    for _ in range(2000):
        table = wire.longstr(b"\x01aF" + table)
    declare = wire.method_payload(Queue.Declare, {"queue": lab.name("deep"), "durable": True})[:-4]
    channel.send_frame(wire.METHOD, declare + table, "queue.declare with a table of 2000 levels")
    channel.expect(Queue.DeclareOk)
    channel.call(Confirm.Select)
    channel.send(Basic.Publish, routing_key=lab.name("deep"))
    header = wire.header_payload(0, {"headers": {}})[:-4]
    channel.send_frame(wire.HEADER, header + table, "content header with a table of 2000 levels")
    channel.expect(Basic.Ack)
    channel.call(Queue.Delete, queue=lab.name("deep"))


@scenario
def header_keys_come_back_in_their_order(lab: Lab) -> None:
    lab.channel().echo(lab.queue(), b"x", headers=[("z", 1), ("a", 2), ("m", 3)])


@scenario
def a_header_key_given_twice_comes_back(lab: Lab) -> None:
    lab.channel().echo(lab.queue(), b"x", headers=[("z", 1), ("a", 2), ("z", 3)])


@scenario
def header_keys_may_be_empty_and_any_utf_8(lab: Lab) -> None:
    lab.channel().echo(lab.queue(), b"x", headers=[("", 1), ("日本", 2), ("k" * 255, 3)])


@scenario
def the_user_id_must_be_the_users(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", routing_key=lab.queue(), user_id="guest")
    channel.publish(b"x", routing_key=lab.queue(), user_id="somebody")
    channel.expect()


@scenario
def an_empty_user_id_is_not_the_users(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", routing_key=lab.queue(), user_id="")
    channel.expect()


@scenario
def an_expiration_must_be_a_number_from_0(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    for expiration in ("abc", "", "-1", "1.5", "10x", " 10", "315360000001"):
        channel = connection.channel()
        channel.publish(b"x", routing_key=q, expiration=expiration)
        channel.expect()


@scenario
def a_long_erlang_term_in_a_reply_text_is_wrapped(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", expiration="99999999999999999999")
    channel.expect()


@scenario
def expirations_that_are_numbers_are_accepted(lab: Lab) -> None:
    channel = lab.channel()
    for expiration in ("60000", "060000", "+60000", "315360000000"):
        channel.echo(lab.queue(), b"x", expiration=expiration)


@scenario
def a_property_flag_that_means_nothing_is_accepted(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.send(Basic.Publish, routing_key=q)
    channel.send_frame(wire.HEADER, wire.header_payload(0, {})[:-2] + b"\x00\x02", "content header with flag 1 set")
    channel.sync(q)
    channel.call(Queue.Declare, queue=q, passive=True)


# --- CC and BCC


@scenario
def cc_adds_routing_keys_and_stays(lab: Lab) -> None:
    channel = lab.channel()
    queues = [lab.queue(name) for name in ("to", "cc1", "cc2")]
    channel.publish(b"x", routing_key=queues[0], headers={"CC": queues[1:]})
    channel.sync(*queues)
    for q in queues:
        channel.drain(q)


@scenario
def bcc_adds_routing_keys_and_goes(lab: Lab) -> None:
    channel = lab.channel()
    queues = [lab.queue(name) for name in ("to", "cc", "bcc")]
    channel.publish(b"x", routing_key=queues[0], headers={"CC": queues[1:2], "BCC": queues[2:], "keep": 1})
    channel.sync(*queues)
    for q in queues:
        channel.drain(q)


@scenario
def bcc_alone_leaves_an_empty_header_table(lab: Lab) -> None:
    channel = lab.channel()
    queues = [lab.queue("to"), lab.queue("bcc")]
    channel.publish(b"x", routing_key=queues[0], headers={"BCC": queues[1:]})
    channel.sync(*queues)
    for q in queues:
        channel.drain(q)


@scenario
def a_queue_named_twice_gets_one_copy(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.publish(b"x", routing_key=q, headers={"CC": [q, q], "BCC": [q]})
    channel.sync(q)
    channel.drain(q)


@scenario
def cc_alone_makes_a_message_routable(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.publish(b"x", routing_key=lab.name("missing"), mandatory=True, headers={"CC": [q]})
    channel.sync(q)
    channel.drain(q)


@scenario
def bcc_is_removed_from_returned_messages(lab: Lab) -> None:
    channel = lab.channel()
    headers = {"CC": [lab.name("missing 2")], "BCC": [lab.name("missing 3")]}
    channel.publish(b"x", routing_key=lab.name("missing"), mandatory=True, headers=headers)
    channel.sync()


@scenario
def cc_counts_on_every_exchange_type(lab: Lab) -> None:
    channel = lab.channel()
    x, q = lab.name("x"), lab.queue()
    channel.exchange(x, "topic")
    channel.bind(q, x, "a.*")
    channel.publish(b"x", exchange=x, routing_key="b", headers={"CC": ["c", "a.b"]})
    channel.sync(q)
    channel.drain(q)


@scenario
def cc_must_be_an_array_of_strings(lab: Lab) -> None:
    connection = lab.connect()
    for headers in (
        {"CC": "key"},
        {"BCC": "key"},
        {"CC": 1},
        {"CC": None},
        {"CC": {"k": 1}},
        {"CC": Field("x", b"key")},
        {"CC": "key", "BCC": 1},
    ):
        channel = connection.channel()
        channel.publish(b"x", routing_key=lab.name("missing"), headers=headers)
        channel.expect()


@scenario
def cc_with_elements_that_are_no_strings(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.publish(b"x", routing_key=lab.name("missing"), mandatory=True, headers={"CC": [1, q, None]})
    channel.sync(q)
    channel.drain(q)


@scenario
def cc_is_case_sensitive(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", routing_key=lab.name("missing"), mandatory=True, headers={"cc": [lab.queue()], "Bcc": 1})
    channel.sync()
