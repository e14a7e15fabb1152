"""A broker and a client."""

from __future__ import annotations

import pytest

from tests.peer import Lab, Peer


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def peer(lab: Lab) -> Peer:
    return lab.connect()
