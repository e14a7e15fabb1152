from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from pamqp import commands

from amqp_broker.session.connection.connection_log import duration, pid
from tests.peer import Lab, Peer

Connection = commands.Connection


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "amqp_broker")


def frame_of_declare(name: str) -> bytes:
    """A passive queue.declare on channel 1; pamqp refuses such names."""
    octets = name.encode()
    payload = b"\0\x32\0\x0a\0\0" + bytes([len(octets)]) + octets + b"\x01\0\0\0\0"
    return b"\x01\0\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"


class Log:
    """Return the log, with N and P for the name and process id of each connection."""

    def __init__(self, caplog: pytest.LogCaptureFixture, peer: Peer) -> None:
        self.records = caplog.records
        self._names = {peer.session.name: "N", pid(peer.session): "P"}

    @property
    def lines(self) -> list[str]:
        lines = []
        for record in self.records:
            text = f"[{record.levelname.lower()}] {record.getMessage()}"
            for name, short in self._names.items():
                text = text.replace(name, short)
            lines.append(text)
        return lines


def start_ok(name: Any) -> Connection.StartOk:
    return Connection.StartOk({"connection_name": name}, "PLAIN", "\0guest\0guest")


def named(lab: Lab, name: Any) -> Peer:
    """A client with a name and an open connection."""
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.send(start_ok(name), Connection.TuneOk(2047, 131072, 0), Connection.Open("/"), channel=0)
    return peer


def test_a_connection_is_logged_in_four_lines(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = named(lab, "my app")
    lab.advance(1_500)
    peer.send(Connection.Close(200, "", 0, 0), channel=0)
    peer.disconnect()
    assert Log(caplog, peer).lines == [
        "[info] accepting AMQP connection N",
        "[info] connection N has a client-provided name: my app",
        "[info] connection N - my app: user 'guest' authenticated and granted access to vhost '/'",
        "[info] closing AMQP connection (N - my app, vhost: '/', user: 'guest', duration: '1s')",
    ]
    assert {getattr(record, "pid", "") for record in caplog.records} == {pid(peer.session)}


def test_messages_are_not_logged(lab: Lab, peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    peer.call(commands.Queue.Declare(queue="q"))
    before = len(caplog.records)
    for _ in range(10):
        peer.publish("q")
    assert len(caplog.records) == before


def test_a_vanished_client_is_logged_as_a_warning(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = lab.connect()
    peer.disconnect()
    assert Log(caplog, peer).lines[-1] == (
        "[warning] closing AMQP connection P (N, vhost: '/', user: 'guest', duration: '0ms'):\n"
        "client unexpectedly closed TCP connection"
    )


def test_a_port_scan_is_not_logged(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    lab.peer().disconnect()
    assert caplog.messages == []


def test_a_client_that_leaves_before_its_login_has_no_user_and_vhost(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQ")
    peer.disconnect()
    assert Log(caplog, peer).lines == [
        "[info] accepting AMQP connection N",
        "[warning] closing AMQP connection P (N, duration: '0ms'):\nclient unexpectedly closed TCP connection",
    ]


def test_an_operation_is_named_as_rabbitmq_names_it(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    peer.send(commands.Basic.RecoverAsync(requeue=False))
    assert caplog.messages[-1].endswith(
        'operation basic.recover_async caused a connection exception not_implemented: "requeue=false"'
    )


def test_a_channel_error_is_logged_with_its_operation(lab: Lab, peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    peer.send(commands.Queue.Declare(queue="q", passive=True))
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.name == "amqp_broker.channel"
    assert Log(caplog, peer).lines[-1] == (
        "[error] Channel error on connection P (N, vhost: '/', user: 'guest'), channel 1:\n"
        "operation queue.declare caused a channel exception not_found: no queue 'q' in vhost '/'"
    )


def test_a_connection_error_is_logged_once(lab: Lab, peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    peer.send(commands.Channel.Open(), channel=1)
    peer.send(Connection.CloseOk(), channel=0)
    assert Log(caplog, peer).lines[-2:] == [
        "[error] Error on AMQP connection P (N, vhost: '/', user: 'guest', state: running), channel 1:\n"
        " operation channel.open caused a connection exception channel_error: \"second 'channel.open' seen\"",
        "[info] closing AMQP connection (N, vhost: '/', user: 'guest', duration: '0ms')",
    ]


def test_an_unknown_vhost_is_logged_in_state_opening(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.send(start_ok(None), Connection.TuneOk(2047, 131072, 0), Connection.Open("nope"), channel=0)
    assert Log(caplog, peer).lines[-1] == (
        "[error] Error on AMQP connection P (N, user: 'guest', state: opening):\nvhost nope not found"
    )


def test_a_refused_login_is_an_error_with_its_reason(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.send(Connection.StartOk({}, "PLAIN", "\0guest\0wrong"), channel=0)
    lab.advance(3_000)
    assert Log(caplog, peer).lines[1:] == [
        "[error] Error on AMQP connection P (N, state: starting):\n"
        "PLAIN login refused: user 'guest' - invalid credentials",
        "[info] closing AMQP connection (N, duration: '3s')",
    ]


def test_missed_heartbeats_are_logged_as_the_reason(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = lab.connect(heartbeat=10)
    lab.advance(60_000)
    assert Log(caplog, peer).lines[-1] == (
        "[error] closing AMQP connection P (N, duration: '30s'):\nmissed heartbeats from client, timeout: 10s"
    )


@pytest.mark.parametrize(("said", "state"), [(b"", "handshake"), (b"AMQP\x00\x00\x09\x01", "frame_header")])
def test_a_handshake_timeout_is_logged(lab: Lab, caplog: pytest.LogCaptureFixture, said: bytes, state: str) -> None:
    peer = lab.peer()
    if said:
        peer.send_bytes(said)
    lab.advance(10_000)
    assert Log(caplog, peer).lines == [
        "[info] accepting AMQP connection N",
        f"[error] closing AMQP connection P (N, duration: '10s'):\n{{handshake_timeout,{state}}}",
    ]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"GET / HT", "HTTP GET request detected on AMQP port. Ensure the client is connecting to the correct port."),
        (
            b"\x16\x03\x01\x02\x00\x01\x00\x01",
            "TLS client detected on non-TLS AMQP port. Ensure the client is connecting to the correct port.",
        ),
        (b"MQTT\nabc", r'client did not start with AMQP protocol header: <<"MQTT\nabc">>'),
    ],
)
def test_a_client_of_another_protocol_is_logged(
    lab: Lab, caplog: pytest.LogCaptureFixture, said: bytes, told: str
) -> None:
    peer = lab.peer()
    peer.send_bytes(said)
    assert Log(caplog, peer).lines[-1] == f"[error] closing AMQP connection N (duration: '0ms'):\n{told}"


def test_an_unknown_version_is_logged(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x03\x01\x00\x00")
    assert caplog.messages[-1].endswith("{bad_version,{3,1,0,0}}")


def test_a_failed_negotiation_is_logged(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.send(start_ok(None), Connection.TuneOk(2047, 10, 0), channel=0)
    lab.advance(3000)
    assert "negotiated frame_max = 10 is lower than the minimum allowed value (8192)" in caplog.text


def test_an_unknown_mechanism_is_logged_at_the_end(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.send(Connection.StartOk({}, "FOO", "x"), channel=0)
    lab.advance(3_000)
    assert caplog.messages[-1].endswith(
        "{handshake_error,starting,0,{amqp_error,command_invalid,"
        "\"unknown authentication mechanism 'FOO'\",'connection.start_ok'}}"
    )


def test_credentials_are_never_logged(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.send(Connection.StartOk({}, "PLAIN", "only-the-password"), channel=0)
    lab.advance(3_000)
    assert '"response <<...>> invalid"' in caplog.messages[-1]
    assert "only-the-password" not in caplog.text


def test_a_close_by_the_broker_is_not_logged_as_an_error(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = lab.connect()
    peer.session.force_close("my reason", lab.now)
    assert Log(caplog, peer).lines[-1].startswith("[info] Error on AMQP connection P (N, vhost: '/', ")
    assert caplog.messages[-1].endswith(
        'channel 0:\n operation none caused a connection exception connection_forced: "my reason"'
    )


@pytest.mark.parametrize("name", ["a\n2026-11-21 [error] forged", "\x1b[2J", "a\r\u2028\u202e\x85"])
def test_a_name_cannot_begin_a_line_or_move_the_cursor(lab: Lab, caplog: pytest.LogCaptureFixture, name: str) -> None:
    peer = named(lab, name)
    peer.send(commands.Channel.Open(), channel=1)
    peer.send_bytes(frame_of_declare(name))
    peer.disconnect()
    # One line of its own begins below each error, and below the warning.
    assert [message.count("\n") for message in caplog.messages] == [0, 0, 0, 1, 1]
    assert all(line.isprintable() for message in caplog.messages for line in message.split("\n"))


def test_a_long_name_is_truncated(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    named(lab, "x" * 100_000)
    assert all(len(message) < 1200 for message in caplog.messages)


@pytest.mark.parametrize("name", [7, None, ["a"], ""])
def test_an_invalid_name_is_not_logged(lab: Lab, caplog: pytest.LogCaptureFixture, name: Any) -> None:
    named(lab, name)
    assert [message for message in caplog.messages if "client-provided" in message] == []


def test_a_quiet_log_has_errors_only(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "amqp_broker")
    peer = lab.connect()
    peer.disconnect()
    assert caplog.messages == []


def test_every_connection_has_a_unique_number(lab: Lab) -> None:
    first, second = lab.connect(), lab.connect()
    assert re.fullmatch(r"<0\.\d+\.0>", pid(first.session))
    assert pid(first.session) != pid(second.session)


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (-5, "0ms"),
        (999, "999ms"),
        (1_000, "1s"),
        (60_000, "1M, 0s"),
        (3_661_000, "1H, 1M, 1s"),
        (3_600_000, "1H, 0M, 0s"),
        (90_061_000, "1D, 1H, 1M, 1s"),
    ],
)
def test_a_duration_is_shown_as_rabbitmq_shows_it(ms: int, shown: str) -> None:
    assert duration(ms) == shown
