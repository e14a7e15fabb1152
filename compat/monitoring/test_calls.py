"""The requests of monitoring clients: each field that they read is there, with its type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from amqp_broker.settings.profiles import PROFILES
from compat.brokers import AmqpBroker
from compat.monitoring.calls import CALLS, Call
from compat.monitoring.playing import answers, missed, traffic

EACH_CALL = [pytest.param(call, id=f"{client} {call.path}") for client, calls in CALLS.items() for call in calls]


@pytest.fixture(scope="module", params=sorted(PROFILES))
def answered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Return the answers of a broker with traffic of each kind that is counted."""
    broker = AmqpBroker(tmp_path_factory.mktemp("amqp-broker"), profile=request.param)
    with broker.running():
        connection = traffic(broker.url)
        yield answers(f"http://guest:guest@127.0.0.1:{broker.management_port}")
        connection.close()


@pytest.mark.parametrize("call", EACH_CALL)
def test_a_monitoring_client_finds_each_field_with_its_type(answered: dict[str, Any], call: Call) -> None:
    assert missed(call, answered[call.path]) == {}
