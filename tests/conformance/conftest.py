"""A broker that the tests of the player share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.broker_under_test import BrokerUnderTest, running_broker


@pytest.fixture(scope="session")
def broker() -> Iterator[BrokerUnderTest]:
    with running_broker() as one:
        yield one
