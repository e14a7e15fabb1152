"""No secret is logged, neither as text nor as the octets that RabbitMQ quotes."""

from __future__ import annotations

import logging
from random import Random

import pytest
from pamqp import base, commands, encode, frame
from pamqp.commands import Connection
from pamqp.common import FieldTable

from amqp_broker.settings.settings import Settings
from tests.mutations import frames_of, mutate
from tests.peer import CAPABILITIES, Lab, Peer

SECRET = "hunter2-Tr0ub4dor"
HEADER = b"AMQP\x00\x00\x09\x01"
PROPERTIES: FieldTable = {"capabilities": dict(CAPABILITIES)}


def table(**values: str) -> str:
    return encode.field_table(dict(values))[4:].decode("latin-1")


def start_ok(mechanism: str, response: str) -> bytes:
    return frame.marshal(Connection.StartOk(PROPERTIES, mechanism, response), 0)


SECRETS = {
    "wrong password": start_ok("PLAIN", f"\0guest\0{SECRET}"),
    "unknown user": start_ok("PLAIN", f"\0nobody\0{SECRET}"),
    "an authorization identity": start_ok("PLAIN", f"guest\0guest\0{SECRET}"),
    "no separators": start_ok("PLAIN", SECRET),
    "AMQPLAIN": start_ok("AMQPLAIN", table(LOGIN="guest", PASSWORD=SECRET)),
    "AMQPLAIN without a login": start_ok("AMQPLAIN", table(PASSWORD=SECRET)),
    "AMQPLAIN that is no table": start_ok("AMQPLAIN", SECRET),
    "an unknown mechanism": start_ok("OAUTHBEARER", SECRET),
    "a challenge answered wrongly": start_ok("RABBIT-CR-DEMO", "guest")
    + frame.marshal(Connection.SecureOk(f"My password is {SECRET}"), 0),
    "a challenge answered with something else": start_ok("RABBIT-CR-DEMO", "guest")
    + frame.marshal(Connection.SecureOk(SECRET), 0),
}


def leaks(text: str) -> bool:
    """Return whether five letters of the secret in a row are in a text, as letters, octets or hexadecimal."""
    pieces = [SECRET[at : at + 5] for at in range(len(SECRET) - 4)]
    return any(
        shown in text
        for piece in pieces
        for shown in (piece, ",".join(map(str, piece.encode())), piece.encode().hex(), piece.encode().hex().upper())
    )


def mutated(data: bytes, seed: int) -> bytes:
    return b"".join(mutate(Random(seed), frames_of(data), [frames_of(data)]))


def lab_with_everything() -> Lab:
    return Lab(auth_mechanisms="PLAIN AMQPLAIN RABBIT-CR-DEMO EXTERNAL")


@pytest.fixture(autouse=True)
def _debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


@pytest.mark.parametrize("data", SECRETS.values(), ids=SECRETS)
def test_a_login_that_fails_does_not_log_its_secret(caplog: pytest.LogCaptureFixture, data: bytes) -> None:
    lab = lab_with_everything()
    peer = lab.peer()
    peer.send_bytes(HEADER + data)
    lab.advance(20_000)
    assert peer.is_dropped
    assert not leaks(caplog.text)


@pytest.mark.parametrize("method", [Connection.UpdateSecret(SECRET, "rotation"), commands.Basic.Qos()])
def test_a_frame_that_cannot_be_read_is_refused_with_its_octets_but_not_logged_with_them(
    lab: Lab, caplog: pytest.LogCaptureFixture, method: base.Frame
) -> None:
    peer = lab.connect()
    peer.send_bytes(frame.marshal(method, 0)[:-1] + b"\xff")
    text = peer.expect(Connection.Close, channel=0).reply_text
    assert "octets = <<" in text
    assert any('frame_error: "type 1' in message for message in caplog.messages)
    assert "octets = <<...>>" in caplog.text
    assert not leaks(caplog.text)


@pytest.mark.parametrize("data", SECRETS.values(), ids=SECRETS)
def test_corrupted_frames_do_not_bring_a_secret_into_the_log(caplog: pytest.LogCaptureFixture, data: bytes) -> None:
    lab = lab_with_everything()
    update = frame.marshal(Connection.UpdateSecret(SECRET, "rotation"), 0)
    for seed in range(60):
        for opened in (False, True):
            peer: Peer = lab.connect() if opened else lab.peer()
            peer.send_bytes(mutated(update * 2, seed) if opened else HEADER + mutated(data, seed))
            peer.disconnect()
    assert caplog.messages
    assert not leaks(caplog.text)


def test_the_check_finds_a_secret_in_each_of_its_forms() -> None:
    octets = ",".join(map(str, SECRET.encode()))
    assert all(map(leaks, (f"x{SECRET}", f"<<0,{octets}>>", SECRET.encode().hex())))
    assert not leaks("closing: ACCESS_REFUSED - hunt, 104,117")


def test_a_name_cannot_begin_a_line_of_the_log(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    peer = lab.peer()
    peer.send_bytes(HEADER + start_ok("PLAIN", "\0a\n2026 [error] forged\x1b[2J\0x"))
    [message] = [text for text in caplog.messages if "login refused" in text]
    assert message.endswith("PLAIN login refused: user 'a?2026 [error] forged?[2J' - invalid credentials")


def test_settings_are_shown_without_their_secrets() -> None:
    shown = repr(Settings(default_user="anna", default_pass=SECRET, tls_key_password=SECRET))
    assert not leaks(shown)
