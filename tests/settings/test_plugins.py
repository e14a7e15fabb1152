from __future__ import annotations

import pytest

from amqp_broker.settings.plugins import BUILT_IN, NEEDS, enabled, with_needed


def test_required_plugins_are_known() -> None:
    assert set(with_needed(NEEDS)) == set(NEEDS)


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ("none", []),
        ("", []),
        ("rabbitmq_shovel", ["rabbitmq_shovel"]),
        ("rabbitmq_top", ["rabbitmq_management", "rabbitmq_management_agent", "rabbitmq_top", "rabbitmq_web_dispatch"]),
        ("rabbitmq_stomp,rabbitmq_shovel x", ["rabbitmq_shovel", "rabbitmq_stomp", "x"]),
        ("ALL", sorted(BUILT_IN)),
    ],
)
def test_plugins_are_enabled_with_those_that_they_require(setting: str, names: list[str]) -> None:
    assert enabled(setting) == names
