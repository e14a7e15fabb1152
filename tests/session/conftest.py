"""The lab of a test, and one client with an open connection and channel 1."""

from __future__ import annotations

import pytest

from tests.peer import Lab, Peer


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    return lab.connect()


@pytest.fixture
def other(lab: Lab) -> Peer:
    """A second client of the same broker."""
    return lab.connect()
