"""Asks a real RabbitMQ the questions of a suite."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from compat.oracle import records
from compat.oracle.records import Seen
from compat.oracle.suite import Answer, Suite
from compat.oracles.oracle import Oracle
from compat.oracles.rabbitmq import RabbitMQ

# Those of which CI asks one each time.
PARTS: Final = 9


class NothingAskedError(Exception):
    """No question of the suite matches."""


def ask(suite: Suite, oracle: Oracle, folder: Path, only: str = "", part: int | None = None) -> dict[str, Answer]:
    """Return the answers of a new oracle to the questions whose name contains `only`.

    `part` is the number of one of the PARTS of them; without it, all are asked. The folder has the data of the oracle.
    Raise NothingAskedError if no question matches, or Unavailable.
    """
    taken = slice(part, None, 1 if part is None else PARTS)
    broker = RabbitMQ(folder, plugins=suite.plugins, settings=suite.settings, oracle=oracle)
    broker.start()
    try:
        with suite.answers(broker) as answers:
            matching = [question for question in answers if only in question]
            chosen = {question: answers[question] for question in matching[taken]}
    finally:
        broker.kill()
    if not matching:
        raise NothingAskedError(f"no question of {suite.name} contains {only!r}")
    # As read from a file.
    plain: dict[str, Answer] = json.loads(json.dumps(chosen))
    return plain


def record(suite: Suite, oracle: Oracle, folder: Path, runs: int, only: str = "", forgets: bool = False) -> list[str]:
    """Ask `runs` times and add new answers to the records; return the questions with a new answer.

    With `forgets`, all earlier answers to the asked questions are dropped. Questions that no longer exist are dropped,
    unless only some questions were selected.
    """
    former = records.load(suite, oracle.name)
    seen: Seen = {} if forgets else dict(former)
    news = set[str]()
    for run in range(runs):
        asked = ask(suite, oracle, folder / str(run), only)
        news.update(records.merge(suite, seen, asked))
    kept = {**former, **seen} if only else {question: seen[question] for question in asked}
    records.save(suite, kept, oracle.name)
    return sorted(news)


def untrue(suite: Suite, oracle: Oracle, folder: Path, only: str = "", part: int | None = None) -> list[str]:
    """Ask all questions or every ninth of them, and return the outdated records as texts.

    A question whose answer is not recorded is asked again, without the others: scenarios are played side by side, and
    a busy machine may miss the times of one.
    """
    answers = ask(suite, oracle, folder / "all", only, part)
    seen = {
        question: recorded
        for question, recorded in records.load(suite, oracle.name).items()
        if question in answers or (part is None and only in question)
    }
    for number, question in enumerate(records.unseen(suite, seen, answers)):
        answers[question] = ask(suite, oracle, folder / str(number), question)[question]
    return list(disagreements(suite, seen, answers))


def disagreements(suite: Suite, seen: Seen, answers: Mapping[str, Answer]) -> Iterator[str]:
    """Yield answers that are not recorded, and records without an answer."""
    for question in records.unseen(suite, seen, answers):
        yield f"{question}\n{_difference(seen.get(question, []), answers[question])}"
    yield from (f"{question}: recorded, but not asked" for question in seen if question not in answers)


def _difference(seen: list[Answer], answer: Answer) -> str:
    recorded = _lines(seen[0]) if seen else []
    return "\n".join(difflib.unified_diff(recorded, _lines(answer), "recorded", "RabbitMQ now", lineterm=""))


def _lines(answer: Answer) -> list[str]:
    return json.dumps(answer, indent=1, ensure_ascii=False).splitlines()
