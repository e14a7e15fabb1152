from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.message import SpecialMessage
from amqp_broker.broker.queues.before_death import properties_before_death, with_expiration
from tests.broker_parts import new_message


def dead(*deaths: object, **headers: object) -> SpecialMessage:
    """Return a dead letter with this history, newest first."""
    return SpecialMessage.of(new_message(b"body", headers={"x-death": list(deaths), **headers}))


@pytest.mark.parametrize(
    ("deaths", "expiration"),
    [
        ([], None),
        ([{"queue": "a"}], None),
        ([{"queue": "b"}, {"queue": "a", "original-expiration": "700"}], "700"),
        ([{"original-expiration": "1"}, {"original-expiration": "2"}], "2"),
        ([{"original-expiration": 5}, "x"], None),
    ],
)
def test_a_dead_letter_had_the_expiration_of_its_oldest_death_that_has_one(
    deaths: list[Any], expiration: str | None
) -> None:
    message = with_expiration(dead(*deaths))
    assert (message.properties().expiration, message.body) == (expiration, b"body")
    assert message.properties().headers == {"x-death": deaths}


def test_before_its_deaths_a_message_had_no_history() -> None:
    message = dead({"original-expiration": "700"}, **{"x-first-death-queue": "q", "x-last-death-queue": "q", "h": 1})
    assert properties_before_death(message).as_dict() == {"headers": {"h": 1}, "expiration": "700"}


def test_before_its_deaths_a_message_may_have_had_an_empty_table() -> None:
    message = dead({"queue": "q"})
    message.had_empty_table = True
    assert properties_before_death(message).headers == {}
