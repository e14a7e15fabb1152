"""The lab of a test, and one client with an open connection and channel 1."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.peer import Lab, Peer


@pytest.fixture(autouse=True)
def _no_internal_error(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a client does, it is never the broker's own code that fails."""
    yield
    assert [record for record in caplog.get_records("call") if record.exc_info] == []


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
