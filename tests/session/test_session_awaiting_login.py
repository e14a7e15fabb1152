"""Clients that have not logged in are bounded in number."""

from __future__ import annotations

import logging

import pytest
from pamqp import commands

from amqp_broker.amqp.frames import PROTOCOL_HEADER
from amqp_broker.broker.clients.awaiting_login import AwaitingLogin
from tests.peer import Lab


@pytest.fixture
def lab() -> Lab:
    return Lab()


def test_of_too_many_the_silent_are_closed(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    lab.broker.awaiting_login = AwaitingLogin(3)
    lasting = lab.connect()
    silent, other, begun = lab.peer(), lab.peer(), lab.peer()
    lab.now += 1999
    new = [lab.peer()]
    assert not silent.is_dropped, "it may be about to log in"
    new.pop().disconnect()
    begun.send_bytes(PROTOCOL_HEADER)
    lab.now += 1
    new = [lab.peer()]
    assert (silent.is_dropped, other.is_dropped, begun.is_dropped) == (True, False, False)
    assert "too many connections have not logged in, and this was silent for longest" in caplog.text
    new.append(lab.peer())
    assert (other.is_dropped, begun.is_dropped) == (True, False)
    new[0].open()
    lab.now += 1999
    new += [lab.peer(), lab.peer()]
    assert begun.is_dropped
    assert not any(peer.is_dropped for peer in (lasting, *new))


@pytest.mark.parametrize("end", ["login", "loss", "timeout", "nonsense", "refusal"])
def test_one_that_has_logged_in_or_is_gone_does_not_count(lab: Lab, end: str) -> None:
    peer = lab.peer()
    assert len(lab.broker.awaiting_login) == 1
    if end == "login":
        peer.open()
    elif end == "loss":
        peer.disconnect()
    elif end == "timeout":
        lab.advance(10_000)
    elif end == "nonsense":
        peer.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
    else:
        peer.send_bytes(PROTOCOL_HEADER)
        peer.send(commands.Connection.StartOk({}, "PLAIN", "\0guest\0wrong", "en_US"), channel=0)
        assert len(lab.broker.awaiting_login) == 1
        lab.advance(3_000)
    assert len(lab.broker.awaiting_login) == 0
