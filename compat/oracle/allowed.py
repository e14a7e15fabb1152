"""The differences that a profile of amqp-broker may have from its oracles, with their reasons: `compat/allowed/`.

The table of a profile has suites, questions, and places in the answer. A question or a place may contain `*`, which
stands for any text. The place `crash` is that of an answer where RabbitMQ fails with an internal error, and amqp-broker
refuses the request. The reason `open` stands for a new one: it is to be mended, or
explained by a sentence in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

TABLES = Path(__file__).parents[1] / "allowed"
OPEN = "open"

# The places in which answers differ, by question.
Found = Mapping[str, set[str]]
# The reason of each allowed difference, by question and place.
Allowed = dict[str, dict[str, str]]


def load(profile: str, folder: Path = TABLES) -> dict[str, Allowed]:
    """Return the table of a profile by suite; empty if there is none."""
    file = folder / f"{profile}.json"
    if not file.exists():
        return {}
    suites: dict[str, dict[str, dict[str, list[str]]]] = json.loads(file.read_text("utf-8"))
    tables: dict[str, Allowed] = {suite: {} for suite in suites}
    for suite, reasons in suites.items():
        for reason, questions in reasons.items():
            for question, places in questions.items():
                tables[suite].setdefault(question, {}).update(dict.fromkeys(places, reason))
    return tables


def save(profile: str, tables: Mapping[str, Allowed], folder: Path = TABLES) -> None:
    """Replace the table of a profile."""
    folder.mkdir(exist_ok=True)
    suites: dict[str, dict[str, dict[str, list[str]]]] = {}
    for suite, table in tables.items():
        for question, places in table.items():
            for place, reason in sorted(places.items()):
                suites.setdefault(suite, {}).setdefault(reason, {}).setdefault(question, []).append(place)
    text = json.dumps(suites, indent=1, ensure_ascii=False, sort_keys=True)
    (folder / f"{profile}.json").write_text(f"{text}\n", "utf-8")


def reason_of(question: str, place: str, allowed: Allowed) -> str | None:
    """Return the reason of a difference; None if it is not allowed. An entry without `*` comes first."""
    fitting = [reason for entry, other, reason in _entries(allowed) if _fits(entry, other, question, place)]
    return fitting[0] if fitting else None


def unlisted(found: Found, allowed: Allowed) -> list[tuple[str, str]]:
    """Return the differences that are not allowed: question and place."""
    return sorted(
        (question, place)
        for question, places in found.items()
        for place in places
        if reason_of(question, place, allowed) is None
    )


def unused(found: Found, allowed: Allowed) -> list[tuple[str, str]]:
    """Return the entries that fit no difference: they are mended, or were never there."""
    return sorted(
        (entry, other)
        for entry, other, _ in _entries(allowed)
        if not any(_fits(entry, other, question, place) for question, places in found.items() for place in places)
    )


def revised(found: Found, allowed: Allowed) -> Allowed:
    """Return the table without entries that fit nothing, and with new differences as open."""
    mended = unused(found, allowed)
    kept = {
        entry: {other: reason for other, reason in places.items() if (entry, other) not in mended}
        for entry, places in allowed.items()
    }
    for question, place in unlisted(found, allowed):
        kept.setdefault(question, {})[place] = OPEN
    return kept


def _entries(allowed: Allowed) -> Iterator[tuple[str, str, str]]:
    """Yield question, place and reason of each entry, those without `*` first."""
    entries = [(entry, other, reason) for entry, places in allowed.items() for other, reason in places.items()]
    yield from sorted(entries, key=lambda entry: "*" in entry[0] + entry[1])


def _fits(entry: str, other: str, question: str, place: str) -> bool:
    return bool(_pattern(entry).fullmatch(question) and _pattern(other).fullmatch(place))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
