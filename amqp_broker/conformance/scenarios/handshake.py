"""The handshake up to connection.open-ok: protocol header, login, limits, vhost."""

from __future__ import annotations

from pamqp import commands
from pamqp.commands import Basic

from amqp_broker.conformance import wire
from amqp_broker.conformance.lab import Lab, scenario, slow_scenario
from amqp_broker.conformance.scenario_connection import Connection


def _logged_in(lab: Lab) -> Connection:
    """Return a connection after the tune of the server."""
    connection = lab.dial()
    with lab.transcript.muted():
        connection.send_header()
        connection.start_ok()
    return connection


def _greeted(lab: Lab) -> Connection:
    """Return a connection after the start of the server."""
    connection = lab.dial()
    with lab.transcript.muted():
        connection.send_header()
    return connection


# --- protocol header


@scenario
def a_connection_opens_and_closes(lab: Lab) -> None:
    connection = lab.dial()
    connection.send_header()
    connection.start_ok()
    connection.tune_ok()
    connection.open()
    connection.call(commands.Connection.Close, reply_code=200, reply_text="bye")


@scenario
def the_header_of_amqp_0_9_means_0_9_1(lab: Lab) -> None:
    lab.dial().send_header(b"AMQP\x01\x01\x00\x09")


@scenario
def the_header_of_amqp_0_8_is_refused(lab: Lab) -> None:
    lab.dial().send_header(b"AMQP\x01\x01\x08\x00")


@scenario
def the_header_of_amqp_1_0_is_refused_with_a_header(lab: Lab) -> None:
    connection = lab.dial()
    connection.send_header(b"AMQP\x00\x01\x00\x00")
    connection.expect_end()


@slow_scenario
def the_header_of_amqp_1_0_with_sasl_is_refused_with_a_header(lab: Lab) -> None:
    connection = lab.dial()
    connection.send_header(b"AMQP\x03\x01\x00\x00")
    connection.expect_end()


@scenario
def the_header_of_amqp_0_10_is_refused_with_a_header(lab: Lab) -> None:
    connection = lab.dial()
    connection.send_header(b"AMQP\x01\x01\x00\x0a")
    connection.expect_end()


@scenario
def a_header_of_another_protocol_is_refused_with_a_header(lab: Lab) -> None:
    connection = lab.dial()
    connection.send_header(b"GET / HTTP/1.1\r\n\r\n")
    connection.expect_end()


@scenario
def a_header_in_two_pieces_is_accepted(lab: Lab) -> None:
    connection = lab.dial()
    connection.send_bytes(b"AMQP\x00", "half of the protocol header")
    connection.send_header(b"\x00\x09\x01")


@scenario
def a_socket_closed_during_the_header_is_harmless(lab: Lab) -> None:
    connection = lab.dial()
    connection.send_bytes(b"AMQP", "half of the protocol header")
    connection.abort()
    lab.channel().declare(lab.name("q"))


# --- login


@slow_scenario
def a_wrong_password_is_refused_with_403_if_the_client_announced_it(lab: Lab) -> None:
    _greeted(lab).start_ok("\0guest\0wrong", capabilities={"authentication_failure_close": True})


@slow_scenario
def a_wrong_password_is_met_with_silence_otherwise(lab: Lab) -> None:
    _greeted(lab).start_ok("\0guest\0wrong", capabilities={})


@slow_scenario
def an_unknown_user_is_refused_as_a_wrong_password_is(lab: Lab) -> None:
    _greeted(lab).start_ok("\0nobody\0guest")


@slow_scenario
def an_empty_password_is_refused(lab: Lab) -> None:
    _greeted(lab).start_ok("\0guest\0")


@slow_scenario
def a_plain_response_without_zero_bytes_is_refused(lab: Lab) -> None:
    _greeted(lab).start_ok("guest guest")


@slow_scenario
def a_plain_response_with_an_authorization_id_is_refused(lab: Lab) -> None:
    _greeted(lab).start_ok("guest\0guest\0guest")


@slow_scenario
def an_unknown_mechanism_is_refused(lab: Lab) -> None:
    _greeted(lab).start_ok(mechanism="KERBEROS_9")


@slow_scenario
def an_unknown_mechanism_is_met_with_silence_without_the_capability(lab: Lab) -> None:
    _greeted(lab).start_ok(mechanism="KERBEROS_9", capabilities={})


@slow_scenario
def a_mechanism_that_is_not_offered_is_refused(lab: Lab) -> None:
    _greeted(lab).start_ok(mechanism="EXTERNAL")


@slow_scenario
def the_demonstration_mechanism_is_not_offered(lab: Lab) -> None:
    _greeted(lab).start_ok(mechanism="RABBIT-CR-DEMO", response="guest")


@scenario
def amqplain_logs_in(lab: Lab) -> None:
    _greeted(lab).start_ok(wire.table({"LOGIN": "guest", "PASSWORD": "guest"})[4:], "AMQPLAIN")


@slow_scenario
def amqplain_with_a_wrong_password_is_refused(lab: Lab) -> None:
    _greeted(lab).start_ok(wire.table({"LOGIN": "guest", "PASSWORD": "wrong"})[4:], "AMQPLAIN")


@slow_scenario
def amqplain_without_a_password_is_refused(lab: Lab) -> None:
    _greeted(lab).start_ok(wire.table({"LOGIN": "guest"})[4:], "AMQPLAIN")


# --- limits


@scenario
def smaller_limits_than_offered_are_accepted(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok(channel_max=10, frame_max=8192, heartbeat=0)
    connection.open()


@slow_scenario
def a_channel_max_above_the_offer_is_refused(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok(channel_max=2048)
    connection.expect()


@slow_scenario
def a_channel_max_without_limit_is_refused(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok(channel_max=0)
    connection.expect()


@slow_scenario
def a_frame_max_above_the_offer_is_refused(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok(frame_max=131073)
    connection.expect()


@slow_scenario
def a_frame_max_without_limit_is_refused(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok(frame_max=0)
    connection.expect()


@slow_scenario
def a_frame_max_below_the_minimum_is_refused(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok(frame_max=4095)
    connection.expect()


@slow_scenario
def a_frame_max_of_4096(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok(frame_max=4096)
    connection.open()


@slow_scenario
def a_frame_max_of_8191(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok(frame_max=8191)
    connection.open()


@slow_scenario
def start_ok_in_a_frame_of_5000_octets(lab: Lab) -> None:
    connection = _greeted(lab)
    with lab.transcript.muted():
        connection.send(
            commands.Connection.StartOk,
            client_properties={"product": "x" * 4900},
            mechanism="PLAIN",
            response="\0guest\0guest",
            locale="en_US",
        )
    connection.expect()


@slow_scenario
def a_heartbeat_of_a_second_is_kept_by_the_broker(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok(heartbeat=1)
    connection.open()
    connection.expect()
    connection.control.send_frame(wire.HEARTBEAT, b"", "heartbeat")
    connection.expect()


@slow_scenario
def a_client_without_heartbeats_is_dropped_without_a_word(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok(heartbeat=1)
    connection.open()
    with lab.transcript.muted():  # the broker sends a varying number of heartbeats before it gives up
        connection.expect_end()
    connection.transcript.record("a< closed without connection.close")


# --- vhost


@scenario
def an_unknown_vhost_is_refused(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok()
    connection.open("nowhere")


@scenario
def an_empty_vhost_is_not_the_default_one(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok()
    connection.open("")


# --- methods out of order


@slow_scenario
def opening_a_vhost_instead_of_logging_in_is_refused(lab: Lab) -> None:
    _greeted(lab).open()


@slow_scenario
def opening_a_vhost_before_tune_ok_is_refused(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.open()


@slow_scenario
def opening_a_channel_before_the_connection_is_refused(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok()
    connection.use_channel(1).call(commands.Channel.Open)


@slow_scenario
def a_method_of_another_class_instead_of_logging_in_is_refused(lab: Lab) -> None:
    _greeted(lab).call(Basic.Qos, prefetch_count=1)


@scenario
def a_method_of_another_class_instead_of_opening_a_vhost_is_refused(lab: Lab) -> None:
    connection = _logged_in(lab)
    connection.tune_ok()
    connection.call(Basic.Qos, prefetch_count=1)


@slow_scenario
def closing_instead_of_logging_in_is_answered(lab: Lab) -> None:
    connection = _greeted(lab)
    connection.call(commands.Connection.Close, reply_code=200, reply_text="no")
    connection.expect_end()
