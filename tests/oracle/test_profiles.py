"""The places in which a profile differs from all of its oracles: compat/oracle/profiles.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from amqp_broker.settings.profiles import PROFILES
from compat.brokers import AmqpBroker, BrokerProcess
from compat.oracle.comparing import fields
from compat.oracle.profiles import ORACLES_OF, ask, differences
from compat.oracle.suite import Answer, Answers, Suite
from compat.oracles.oracle import ORACLES


@contextmanager
def _none(_: BrokerProcess) -> Iterator[Answers]:
    yield {}


SUITE = Suite("plain", _none, _none, fields)


@pytest.mark.parametrize(
    ("older", "newer", "here", "places"),
    [
        ([1], [2], 1, set()),
        ([1], [2], 2, set()),
        ([1, 3], [2], 3, set()),
        ([1], [2], 3, {"all"}),
        ([{"x": 1, "y": 1}], [{"x": 2, "y": 1}], {"x": 1, "y": 2}, {".y"}),
        ([{"x": 1, "y": 1}], [{"x": 1, "y": 1, "z": 1}], {"x": 2, "y": 1}, {".x"}),
        # An answer that differs from both differs, even if no place is the same.
        ([{"x": 1}], [{"y": 1}], {}, {".x: not here"}),
    ],
)
def test_a_place_differs_if_it_differs_from_each_oracle(
    older: list[Answer], newer: list[Answer], here: Answer, places: set[str]
) -> None:
    found = differences(SUITE, [{"q": older}, {"q": newer}], {"q": here})
    assert found == ({"q": places} if places else {})


def test_the_nearest_of_several_recorded_answers_counts() -> None:
    recorded = {"q": [{"x": 1, "y": 1, "z": 1}, {"x": 1, "y": 2, "z": 2}]}
    assert differences(SUITE, [recorded], {"q": {"x": 1, "y": 2, "z": 3}}) == {"q": {".z"}}


def test_a_question_of_one_side_alone_is_a_difference() -> None:
    assert differences(SUITE, [{"a": [1]}], {"b": 1}) == {"a": {"not asked"}, "b": {"not recorded"}}


def test_a_question_that_only_one_oracle_was_asked_is_compared_with_that() -> None:
    assert differences(SUITE, [{"a": [1]}, {}], {"a": 2}) == {"a": {"all"}}


def test_amqp_broker_is_asked_with_the_profile_about_what_the_oracles_were_asked(tmp_path: Path) -> None:
    @contextmanager
    def own_answers(broker: AmqpBroker) -> Iterator[Answers]:
        yield {"options": broker.options, "durable": broker.declares_durable}

    suite = Suite("plain", _none, own_answers, fields)
    assert ask(suite, "4.3", ["4.0", "4.3"], tmp_path) == {"options": ["--compat", "4.3"], "durable": True}
    assert ask(suite, "3.13", ["3.10"], tmp_path) == {"options": ["--compat", "3.13"], "durable": False}


def test_profiles_and_oracles_exist() -> None:
    assert ORACLES_OF.keys() <= PROFILES.keys()
    assert {name for names in ORACLES_OF.values() for name in names} <= ORACLES.keys()


def test_each_rabbitmq_4_is_an_oracle_of_a_profile() -> None:
    assert {name for names in ORACLES_OF.values() for name in names} >= {"4.0", "4.3"}
