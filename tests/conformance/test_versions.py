"""The recorded versions that count for a version of RabbitMQ."""

from __future__ import annotations

import pytest

from amqp_broker.conformance.versions import UnknownVersion, accepted, guessed


@pytest.mark.parametrize(
    ("version", "oracles"),
    [
        ("3.10", ("3.10",)),
        ("3.13.7", ("3.10",)),
        ("4.0.5", ("4.0",)),
        ("4.1.0-rc.1", ("4.0", "4.3")),
        ("4.2", ("4.0", "4.3")),
        ("4.3.6", ("4.3",)),
    ],
)
def test_a_version_between_two_may_answer_as_either(version: str, oracles: tuple[str, ...]) -> None:
    assert accepted(version) == oracles


@pytest.mark.parametrize("version", ["", "4", "3.9", "4.4", "5.0", "four", "4.3x", "40.3"])
def test_other_versions_are_unknown(version: str) -> None:
    with pytest.raises(UnknownVersion, match=r"choose 3\.10, 4\.0 or 4\.3, or a version between them"):
        accepted(version)


def test_a_broker_that_is_not_rabbitmq_is_compared_with_the_newest() -> None:
    assert guessed("RabbitMQ", "4.0.5") == "4.0.5"
    assert guessed("RabbitMQ", "4.9.1") == guessed("LavinMQ", "2.4.0") == guessed("", "") == "4.3"
