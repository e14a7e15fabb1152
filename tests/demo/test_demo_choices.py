from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.demo.demo_choices import FAULTS, NUMBERS, DemoChoices, offered
from amqp_broker.demo.fault_plan import fault_plan
from amqp_broker.demo.strategies import STRATEGIES


def test_each_choice_has_a_usual_value() -> None:
    choices = DemoChoices.from_mapping({})
    assert (choices.strategy, choices.faults) == ("async", FAULTS)
    assert {name: getattr(choices, name) for name in NUMBERS} == {
        name: usual for name, (_, _, usual) in NUMBERS.items()
    }


def test_everything_can_be_chosen() -> None:
    given = {"strategy": "all", "messages": 7, "rate": 0, "window": 3, "seed": 9, "faults": ["cut", "nack"]}
    choices = DemoChoices.from_mapping(given)
    assert (choices.messages, choices.rate, choices.window, choices.seed) == (7, 0, 3, 9)
    assert [strategy.name for strategy in choices.strategies] == list(STRATEGIES)
    assert {event.rule["action"] for event in fault_plan(7, 9, choices.faults) if event.rule} == {"cut", "confirm_nack"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"speed": 1}, "the demo has no 'speed', but strategy, messages, rate, window, seed, faults"),
        ({"strategy": "hope"}, "strategy must be one of sync, window, async, naive or all, not 'hope'"),
        ({"messages": 0}, "messages must be a whole number from 1 to 10000, not 0"),
        ({"rate": "fast"}, "rate must be a whole number from 0 to 10000, not 'fast'"),
        ({"window": True}, "window must be a whole number from 1 to 1000, not True"),
        ({"seed": None}, "seed must be a whole number"),
        ({"faults": "cut"}, "faults must be an array of names: nack,"),
        ({"faults": ["restart"]}, "there is no fault 'restart'; there are: nack,"),
        ({"faults": [{}]}, "there is no fault {}; there are: nack,"),
    ],
)
def test_a_wrong_choice_is_explained(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        DemoChoices.from_mapping(given)
    assert str(caught.value).startswith(sentence)


def test_each_offer_can_be_chosen() -> None:
    choices = offered()
    for strategy in choices["strategies"]:
        DemoChoices.from_mapping({"strategy": strategy["name"]})
    for fault in choices["faults"]:
        DemoChoices.from_mapping({"faults": [fault["name"]]})
        assert fault["sentence"]
