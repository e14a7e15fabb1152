"""The answers of each oracle in files: `compat/recorded/<oracle>/<suite>.json`.

The suite `wire` has its records in `amqp_broker/conformance/recorded`, which the package ships. An oracle is a minor
version of RabbitMQ; `version.txt` there has the exact one that was recorded. A file is an object with
the list of answers to each question. Most questions have one answer; those with answers that vary between runs have
several. The question `area/name` of a suite with areas is the question `name` of
`<suite>/<area>.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from amqp_broker.conformance.records import RECORDED as SHIPPED
from compat.oracle.suite import Answer, Suite
from compat.oracles.oracle import OLDEST

RECORDED = Path(__file__).parents[1] / "recorded"
VERSION_FILE = "version.txt"

# The recorded answers, by question.
Seen = dict[str, list[Answer]]


def load(suite: Suite, oracle: str = OLDEST.name, folder: Path | None = None) -> Seen:
    """Return the recorded answers; empty if there are none."""
    place = (folder or suite.folder or RECORDED) / oracle / suite.name
    if suite.has_areas:
        return {
            f"{file.stem}/{name}": seen for file in sorted(place.glob("*.json")) for name, seen in _read(file).items()
        }
    file = place.with_suffix(".json")
    return _read(file) if file.exists() else {}


def save(suite: Suite, seen: Seen, oracle: str = OLDEST.name, folder: Path | None = None) -> None:
    """Replace the files of a suite."""
    place = (folder or suite.folder or RECORDED) / oracle / suite.name
    if not suite.has_areas:
        _write(place.with_suffix(".json"), seen)
        return
    areas: dict[str, Seen] = {}
    for question, answers in seen.items():
        area, _, name = question.partition("/")
        areas.setdefault(area, {})[name] = answers
    for area, seen_there in areas.items():
        _write(place / f"{area}.json", seen_there)
    for file in place.glob("*.json"):
        if file.stem not in areas:
            file.unlink()


def recorded_version(oracle: str, folder: Path | None = None) -> str:
    """Return the exact version that was recorded, or an empty string."""
    file = (folder or SHIPPED) / oracle / VERSION_FILE
    return file.read_text("utf-8").strip() if file.exists() else ""


def save_version(oracle: str, version: str, folder: Path | None = None) -> None:
    file = (folder or SHIPPED) / oracle / VERSION_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{version}\n", "utf-8")


def merge(suite: Suite, seen: Seen, answers: Mapping[str, Answer]) -> list[str]:
    """Add the answers of one run; return the questions with a new answer."""
    news = unseen(suite, seen, answers)
    for question in news:
        seen.setdefault(question, []).append(answers[question])
    return news


def unseen(suite: Suite, seen: Seen, answers: Mapping[str, Answer]) -> list[str]:
    """Return the questions with a new answer. Sets in another order are no new answer."""
    return [question for question, answer in answers.items() if _is_new(suite, question, answer, seen)]


def _is_new(suite: Suite, question: str, answer: Answer, seen: Seen) -> bool:
    recorded = seen.get(question, [])
    return not is_among(answer, recorded) and all(suite.fields(question, one, answer) for one in recorded)


def is_among(answer: Answer, answers: Sequence[Answer]) -> bool:
    return any(is_same(answer, each) for each in answers)


def is_same(one: Answer, other: Answer) -> bool:
    """Return whether two values are the same JSON: Python treats true, 1 and 1.0 as equal, clients do not."""
    # NaN is the same as itself, too.
    return (one == other or one != one) and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _read(file: Path) -> Seen:
    seen: Seen = json.loads(file.read_text("utf-8"))
    return seen


def _write(file: Path, seen: Seen) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # An interruption leaves the old file or the new one.
    new = file.with_suffix(".new")
    new.write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n", "utf-8")
    new.replace(file)
