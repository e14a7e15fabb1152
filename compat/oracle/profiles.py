"""The profiles of amqp-broker, and the oracles that each is compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from compat.brokers import AmqpBroker
from compat.oracle import records
from compat.oracle.records import Seen, is_among
from compat.oracle.suite import Answer, Suite
from compat.oracles.oracle import ORACLES

# Where two oracles differ, a profile between them may answer as either.
ORACLES_OF = {"3.13": ("3.10",), "4.0": ("4.0",), "4.2": ("4.0", "4.3"), "4.3": ("4.3",)}
# A question that one side alone has.
NOT_RECORDED, NOT_ASKED = "not recorded", "not asked"


def ask(suite: Suite, profile: str, oracles: Sequence[str], folder: Path) -> dict[str, Answer]:
    """Return the answers of a new amqp-broker with this profile to all questions. Its data is in the folder."""
    broker = AmqpBroker(folder, profile=profile)
    broker.declares_durable = all(ORACLES[name].declares_durable for name in oracles)
    with suite.own_answers(broker) as answers:
        # As read from a file.
        plain: dict[str, Answer] = json.loads(json.dumps(dict(answers)))
    return plain


def differences(suite: Suite, recorded: list[Seen], answers: Mapping[str, Answer]) -> dict[str, set[str]]:
    """Return the places in which the answer to each question differs from all oracles; `recorded` has one of each."""
    found = {}
    for question in sorted({*answers, *(question for seen in recorded for question in seen)}):
        theirs = [seen[question] for seen in recorded if question in seen]
        if not theirs:
            found[question] = {NOT_RECORDED}
        elif question not in answers:
            found[question] = {NOT_ASKED}
        else:
            found[question] = _places(suite, question, theirs, answers[question])
    return {question: places for question, places in found.items() if places}


def _places(suite: Suite, question: str, theirs: list[list[Answer]], answer: Answer) -> set[str]:
    """Return the places in which an answer differs from those of each oracle."""
    of_each = []
    for alternatives in theirs:
        if is_among(answer, alternatives):
            return set()
        of_each.append(min((suite.fields(question, one, answer) for one in alternatives), key=len))
    # Some comparisons regard the order of a list as irrelevant, others name the places differently.
    return set.intersection(*of_each) or (min(of_each, key=len) if all(of_each) else set())


def load_recorded(suite: Suite, oracles: Sequence[str]) -> list[Seen]:
    return [records.load(suite, oracle) for oracle in oracles]
