"""connection.tune: limits, the heartbeat, and how long all this may take."""

from __future__ import annotations

import pytest
from pamqp.commands import Connection

from amqp_broker.settings.readers import FRAME_MAX_HIGHEST
from tests.peer import Lab, Peer


def tuning(lab: Lab) -> tuple[Peer, Connection.Tune]:
    """A client that has logged in, and what it was offered."""
    peer = lab.peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(Connection.Start, channel=0)
    peer.send(Connection.StartOk({}, "PLAIN", "\0guest\0guest"), channel=0)
    return peer, peer.expect(Connection.Tune, channel=0)


def test_the_limits_of_the_configuration_are_offered() -> None:
    _, tune = tuning(Lab(channel_max=10, frame_max=16384, heartbeat_s=7))
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (10, 16384, 7)


def test_rabbitmqs_limits_are_the_defaults(lab: Lab) -> None:
    _, tune = tuning(lab)
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, 131072, 60)


@pytest.mark.parametrize(
    ("channel_max", "frame_max", "wrong"),
    [
        (2048, 131072, "channel_max = 2048 is higher than the maximum allowed value (2047)"),
        (0, 131072, "channel_max = 0 (no limit) is higher than the maximum allowed value (2047)"),
        (2047, 131073, "frame_max = 131073 is higher than the maximum allowed value (131072)"),
        (2047, 0, "frame_max = 0 is higher than the maximum allowed value (131072)"),
        (2047, 8191, "frame_max = 8191 is lower than the minimum allowed value (8192)"),
        (2047, 1, "frame_max = 1 is lower than the minimum allowed value (8192)"),
        (0, 0, "frame_max = 0 is higher than the maximum allowed value (131072)"),
    ],
)
def test_limits_beyond_the_offer_are_refused(lab: Lab, channel_max: int, frame_max: int, wrong: str) -> None:
    peer, _ = tuning(lab)
    peer.send(Connection.TuneOk(channel_max, frame_max, 0), Connection.Open("/"), channel=0)
    # Only the log has the reason.
    peer.expect_nothing()
    assert wrong in peer.session.cause
    lab.advance(2999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped


@pytest.mark.parametrize(("asked", "used"), [(0, FRAME_MAX_HIGHEST), (8192, 8192), (200_000, 200_000)])
def test_frames_may_have_no_limit(asked: int, used: int) -> None:
    lab = Lab(frame_max=FRAME_MAX_HIGHEST)
    _, tune = tuning(lab)
    assert tune.frame_max == 0
    peer = lab.peer()
    peer.open(frame_max=asked)
    assert peer.session.frame_max == used
    peer.open_channel(1)
    peer.declare("q")
    body = bytes(300_000)
    peer.publish("q", body, frame_size=min(used, 300_000) - 8)
    got = peer.get("q")
    assert got is not None
    assert got[1].body == body


def test_frames_without_a_limit_have_a_least_size() -> None:
    peer, _ = tuning(Lab(frame_max=FRAME_MAX_HIGHEST))
    peer.send(Connection.TuneOk(2047, 8191, 0), Connection.Open("/"), channel=0)
    assert "frame_max = 8191 is lower than the minimum allowed value (8192)" in peer.session.cause


@pytest.mark.parametrize(("channel_max", "frame_max"), [(2047, 131072), (1, 8192), (10, 100_000)])
def test_limits_within_the_offer_are_accepted(lab: Lab, channel_max: int, frame_max: int) -> None:
    peer = lab.peer()
    peer.open(channel_max=channel_max, frame_max=frame_max)
    assert (peer.session.channel_max, peer.session.frame_max) == (channel_max, frame_max)


@pytest.mark.parametrize("heartbeat", [0, 1, 60, 61, 65535])
def test_the_client_decides_the_heartbeat(lab: Lab, heartbeat: int) -> None:
    peer = lab.peer()
    peer.open(heartbeat=heartbeat)
    assert peer.session.heartbeat_s == heartbeat


# Time


def test_a_silent_client_is_dropped_after_ten_seconds(lab: Lab) -> None:
    peer = lab.peer()
    lab.advance(9999)
    assert not peer.is_dropped
    lab.advance(1)
    assert peer.is_dropped
    peer.expect_nothing()


def test_the_handshake_timeout_applies_until_open(lab: Lab) -> None:
    peer, _ = tuning(lab)
    peer.send(Connection.TuneOk(2047, 131072, 0), channel=0)
    lab.advance(10_000)
    assert peer.is_dropped


def test_an_open_connection_has_no_handshake_timeout(lab: Lab) -> None:
    peer = lab.connect()
    lab.advance(3_600_000)
    assert not peer.is_dropped


def test_the_handshake_timeout_is_a_setting() -> None:
    lab = Lab(handshake_timeout_ms=500)
    peer = lab.peer()
    lab.advance(500)
    assert peer.is_dropped


def test_a_broker_without_a_channel_limit_accepts_any() -> None:
    for asked in (0, 1, 65535):
        lab = Lab(channel_max=0)
        peer, tune = tuning(lab)
        assert tune.channel_max == 0
        peer.send(Connection.TuneOk(asked, 131072, 0), channel=0)
        peer.call(Connection.Open("/"), channel=0)
        assert peer.session.channel_max == (asked or 65535)


def test_the_frame_limit_before_tune_ok_is_a_setting() -> None:
    assert Lab().peer().session.frame_max == 8192
    assert Lab(compat="3.13").peer().session.frame_max == 4096
    assert Lab(initial_frame_max=65536).peer().session.frame_max == 65536
