"""A broker, and clients with a queue `q`."""

from __future__ import annotations

import pytest
from pamqp import commands

from tests.peer import Lab, Peer


@pytest.fixture
def publisher(lab: Lab) -> Peer:
    """A client with a queue `q`, whose channel is in confirm mode."""
    publisher = lab.connect()
    publisher.declare("q")
    publisher.call(commands.Confirm.Select())
    return publisher


@pytest.fixture
def peer(lab: Lab) -> Peer:
    """A client with a queue `q`."""
    peer = lab.connect()
    peer.declare("q")
    return peer
