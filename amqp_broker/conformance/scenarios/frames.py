"""Invalid frames."""

from __future__ import annotations

import struct

from pamqp import commands
from pamqp.commands import Basic, Queue

from amqp_broker.conformance import wire
from amqp_broker.conformance.lab import Lab, scenario, slow_scenario
from amqp_broker.conformance.scenario_channel import Channel

METHOD_QOS = wire.method_payload(Basic.Qos, {"prefetch_count": 1})


@slow_scenario
def a_frame_without_its_end_octet_is_refused(lab: Lab) -> None:
    connection = lab.channel().connection
    connection.send_bytes(wire.frame(wire.METHOD, 1, METHOD_QOS, b"\x00"), "basic.qos with the end octet 0")
    connection.expect_end()


@slow_scenario
def a_frame_of_an_unknown_type_is_refused(lab: Lab) -> None:
    connection = lab.channel().connection
    connection.send_bytes(wire.frame(9, 1, b"12345"), "a frame of type 9")
    connection.expect_end()


@slow_scenario
def a_frame_of_type_0_on_channel_0_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.send_bytes(wire.frame(0, 0, b""), "a frame of type 0")
    connection.expect_end()


@slow_scenario
def a_frame_too_large_is_refused(lab: Lab) -> None:
    connection = lab.connect(frame_max=8192).channel().connection
    header = struct.pack(">BHI", wire.BODY, 1, 8193)
    connection.send_bytes(header + bytes(8193) + wire.FRAME_END, "a body frame of 8193 bytes and 8 more")
    connection.expect_end()


@scenario
def a_frame_eight_bytes_too_large_is_accepted(lab: Lab) -> None:
    q = lab.queue()
    channel = lab.connect(frame_max=8192).channel()
    channel.publish(bytes(8192), routing_key=q, frame_sizes=(8192,))
    channel.sync(q)
    channel.get(q)


@slow_scenario
def a_frame_before_login_may_have_4096_bytes_and_not_more(lab: Lab) -> None:
    connection = lab.dial()
    with lab.transcript.muted():
        connection.send_header()
    connection.send_bytes(struct.pack(">BHI", wire.METHOD, 0, 100000), "a frame header that announces 100000 bytes")
    connection.expect_end()


@slow_scenario
def a_heartbeat_on_a_channel_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.send_frame(wire.HEARTBEAT, b"", "heartbeat")
    channel.connection.expect_end()


@slow_scenario
def a_heartbeat_with_a_payload_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.control.send_frame(wire.HEARTBEAT, b"hello", "heartbeat with a payload")
    connection.expect_end()


@slow_scenario
def a_content_header_on_channel_0_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.control.send_frame(wire.HEADER, wire.header_payload(1, {}), "content header")
    connection.expect_end()


@slow_scenario
def a_body_on_channel_0_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.control.send_frame(wire.BODY, b"hello", "body")
    connection.expect_end()


@slow_scenario
def an_unknown_method_ends_the_connection(lab: Lab) -> None:
    channel = lab.channel()
    channel.send_frame(wire.METHOD, struct.pack(">HH", 60, 99), "method 99 of class 60")
    channel.connection.expect_end()


@slow_scenario
def an_unknown_class_ends_the_connection(lab: Lab) -> None:
    channel = lab.channel()
    channel.send_frame(wire.METHOD, struct.pack(">HH", 77, 10), "method 10 of class 77")
    channel.connection.expect_end()


@slow_scenario
def an_unknown_method_on_channel_0_ends_the_connection(lab: Lab) -> None:
    connection = lab.connect()
    connection.control.send_frame(wire.METHOD, struct.pack(">HH", 10, 99), "method 99 of class 10")
    connection.expect_end()


@slow_scenario
def a_method_frame_too_short_for_its_fields_ends_the_connection(lab: Lab) -> None:
    channel = lab.channel()
    channel.send_frame(wire.METHOD, wire.method_payload(Queue.Declare, {"queue": "q"})[:8], "half of queue.declare")
    channel.connection.expect_end()


@slow_scenario
def a_method_frame_with_more_than_its_fields(lab: Lab) -> None:
    channel = lab.channel()
    channel.send_frame(wire.METHOD, METHOD_QOS + b"more", "basic.qos and four bytes more")
    channel.expect(Basic.QosOk)


@slow_scenario
def a_method_frame_without_a_method_ends_the_connection(lab: Lab) -> None:
    channel = lab.channel()
    channel.send_frame(wire.METHOD, b"", "a method frame of 0 bytes")
    channel.connection.expect_end()


@slow_scenario
def a_name_that_is_not_utf_8_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Queue.Declare, queue=b"\xff\xfe", passive=True)


@slow_scenario
def a_routing_key_that_is_not_utf_8(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"x", routing_key=b"\xff\xfe")
    channel.sync()


@slow_scenario
def a_table_with_an_unknown_tag_ends_the_connection(lab: Lab) -> None:
    channel = lab.channel()
    payload = wire.method_payload(Queue.Declare, {"queue": lab.name("q")})[:-4]
    channel.send_frame(wire.METHOD, payload + wire.longstr(b"\x01kZ1234"), "queue.declare with a table value of tag Z")
    channel.connection.expect_end()


# --- contents


def _publish(channel: Channel) -> None:
    channel.send(Basic.Publish, routing_key="nowhere")


@scenario
def a_method_instead_of_a_content_header_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    _publish(channel)
    channel.call(Basic.Qos, prefetch_count=1)


@scenario
def a_body_instead_of_a_content_header_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    _publish(channel)
    channel.send_frame(wire.BODY, b"hello", "body")
    channel.expect()


@scenario
def a_content_header_of_another_class_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    _publish(channel)
    channel.send_frame(wire.HEADER, wire.header_payload(5, {}, class_id=10), "content header of class 10")
    channel.expect()


@scenario
def a_content_header_with_a_weight(lab: Lab) -> None:
    channel = lab.channel()
    _publish(channel)
    channel.send_frame(wire.HEADER, wire.header_payload(0, {}, weight=1), "content header of weight 1")
    channel.expect()


@scenario
def a_method_instead_of_a_body_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    _publish(channel)
    channel.send_frame(wire.HEADER, wire.header_payload(5, {}), "content header for 5 bytes")
    channel.call(Basic.Qos, prefetch_count=1)


@scenario
def a_second_content_header_instead_of_a_body_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    _publish(channel)
    channel.send_frame(wire.HEADER, wire.header_payload(5, {}), "content header for 5 bytes")
    channel.send_frame(wire.HEADER, wire.header_payload(5, {}), "content header for 5 bytes")
    channel.expect()


@scenario
def a_content_header_without_a_method_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.send_frame(wire.HEADER, wire.header_payload(5, {}), "content header for 5 bytes")
    channel.expect()


@scenario
def a_body_without_a_method_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.send_frame(wire.BODY, b"hello", "body")
    channel.expect()


@scenario
def a_body_longer_than_announced_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    _publish(channel)
    channel.send_frame(wire.HEADER, wire.header_payload(3, {}), "content header for 3 bytes")
    channel.send_frame(wire.BODY, b"hello", "body of 5 bytes")
    channel.call(Basic.Qos, prefetch_count=1)


@scenario
def a_body_frame_after_an_empty_body_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    _publish(channel)
    channel.send_frame(wire.HEADER, wire.header_payload(0, {}), "content header for 0 bytes")
    channel.send_frame(wire.BODY, b"", "empty body")
    channel.expect()


@scenario
def empty_body_frames_before_the_body_are_accepted(lab: Lab) -> None:
    q = lab.queue()
    channel = lab.channel()
    channel.publish(b"hello", routing_key=q, frame_sizes=(0, 2, 0))
    channel.sync(q)
    channel.get(q)


@scenario
def a_content_announced_larger_than_any_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    _publish(channel)
    channel.send_frame(wire.HEADER, wire.header_payload(536870913, {}), "content header for 536870913 bytes")
    channel.call(Basic.Qos, prefetch_count=1)


@scenario
def contents_of_two_channels_may_be_interleaved(lab: Lab) -> None:
    q = lab.queue()
    connection = lab.connect()
    one, two = connection.channel(), connection.channel()
    for channel in (one, two):
        channel.send(Basic.Publish, routing_key=q)
        channel.send_frame(wire.HEADER, wire.header_payload(2, {}), "content header for 2 bytes")
    one.send_frame(wire.BODY, b"1", "body 1")
    two.send_frame(wire.BODY, b"22", "body 22")
    two.sync(q)
    one.send_frame(wire.BODY, b"1", "body 1")
    one.sync(q)
    one.drain(q)


@scenario
def a_content_method_of_the_server_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.send(Basic.Deliver, consumer_tag="c", delivery_tag=1)
    channel.send_frame(wire.HEADER, wire.header_payload(0, {}), "content header for 0 bytes")
    channel.expect()


@scenario
def a_reply_of_the_server_on_a_channel_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.send(Queue.DeclareOk, queue="q")
    channel.expect()


@scenario
def frames_sent_one_byte_at_a_time_are_understood(lab: Lab) -> None:
    channel = lab.channel()
    for byte in wire.frame(wire.METHOD, 1, METHOD_QOS):
        channel.connection.write(bytes([byte]))
    channel.expect(Basic.QosOk)


@scenario
def many_methods_in_one_write_are_answered_in_order(lab: Lab) -> None:
    channel = lab.channel()
    with_flow = wire.frame(wire.METHOD, 1, wire.method_payload(commands.Channel.Flow, {"active": True}))
    channel.connection.send_bytes((wire.frame(wire.METHOD, 1, METHOD_QOS) + with_flow) * 2, "qos, flow, qos, flow")
    for _ in range(4):
        channel.expect()
