"""Steps as data: names in their values."""

from __future__ import annotations

import pytest
from pamqp.commands import Queue

from amqp_broker.conformance.duel.steps import (
    At,
    Call,
    Http,
    Name,
    Publish,
    Settle,
    Step,
    Wait,
    has_short_time,
    names_in,
    renamed,
)
from amqp_broker.conformance.wire import Field

Q, X = Name("q0"), Name("x0")
VALUE = {"queue": Q, "arguments": {"x-dead-letter-exchange": Field("S", X), "x-max-length": 1}, "headers": {"CC": [Q]}}


def test_names_are_found_in_tables_arrays_and_fields() -> None:
    assert names_in(VALUE) == {Q, X}


@pytest.mark.parametrize(
    ("step", "has_one"),
    [
        (Call(At(), Queue.Declare, {"queue": Q, "arguments": {"x-message-ttl": Field("I", 700)}}), True),
        (Publish(At(), {"routing_key": Q, "expiration": "700"}), True),
        (Http("PUT", "policies/{vhost}/p", {"definition": {"message-ttl": 700}}), True),
        (Publish(At(), {"routing_key": Q, "expiration": "600000"}), False),
        (Settle(At(), "ack", 1, {}), False),
        (Wait(700), False),
    ],
)
def test_a_short_time_is_found_in_arguments_options_and_bodies(step: Step, has_one: bool) -> None:
    assert has_short_time(step) is has_one


def test_each_name_is_replaced_and_texts_stay() -> None:
    assert renamed({**VALUE, "text": "q0"}, {"q0": "1.q0", "x0": "1.x0"}) == {
        "queue": "1.q0",
        "arguments": {"x-dead-letter-exchange": Field("S", "1.x0"), "x-max-length": 1},
        "headers": {"CC": ["1.q0"]},
        "text": "q0",
    }


def test_a_channel_is_labelled_by_its_connection_and_number() -> None:
    assert At(1, 2).label == "b3"
