from __future__ import annotations

import pytest

from amqp_broker.settings.plugins import BUILT_IN, NEEDS, enabled, explicit, missing, with_needed
from amqp_broker.settings.settings import Settings


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


def test_without_a_list_the_plugins_are_those_that_are_built_in_and_served() -> None:
    assert set(explicit(Settings())) - set(explicit(Settings(management=False))) == {
        "rabbitmq_management",
        "rabbitmq_shovel_management",
    }
    assert set(explicit(Settings())) - set(explicit(Settings(prometheus=False))) == {"rabbitmq_prometheus"}
    assert missing(explicit(Settings())) == []


def test_plugins_that_this_broker_does_not_have_are_found_with_those_that_they_require() -> None:
    assert missing(["rabbitmq_shovel", "rabbitmq_web_mqtt"]) == ["rabbitmq_mqtt", "rabbitmq_web_mqtt"]


# The numbers of RabbitMQ 3.10.8 and 4.3.6.
@pytest.mark.parametrize(
    ("setting", "number"),
    [
        ("none", 0),
        ("rabbitmq_management,rabbitmq_prometheus", 4),
        ("rabbitmq_management rabbitmq_stomp", 4),
        (
            "rabbitmq_management,rabbitmq_prometheus,rabbitmq_shovel,rabbitmq_shovel_management,"
            "rabbitmq_consistent_hash_exchange,rabbitmq_stomp,rabbitmq_sharding,rabbitmq_auth_mechanism_ssl,"
            "rabbitmq_event_exchange",
            11,
        ),
    ],
)
def test_the_number_of_plugins_is_that_of_the_list_with_what_it_requires(setting: str, number: int) -> None:
    assert len(with_needed(explicit(Settings(plugins=setting)))) == number
