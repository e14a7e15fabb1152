"""The comparison of a scenario's transcripts: RabbitMQ's recorded ones and amqp-broker's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from compat.differential.differences import DIFFERENCES
from compat.differential.lab import STOPPED, Scenario

Lines = list[str]


def problems(scenario: Scenario, recorded: list[Lines], played: Lines) -> list[str]:
    """Return the unlisted differences of amqp-broker's transcript from the most similar one of RabbitMQ's."""
    if not recorded:
        return ["it was never recorded: run `make record`"]
    found = [list(_problems(scenario, "\n".join(lines) + "\n", "\n".join(played) + "\n")) for lines in recorded]
    return min(found, key=len)


def _problems(scenario: Scenario, expected: str, played: str) -> Iterator[str]:
    for broker, transcript in (("RabbitMQ", expected), ("amqp-broker", played)):
        if STOPPED in transcript:
            yield f"{broker}: {transcript[transcript.index(STOPPED) :].strip()}"
    for difference in DIFFERENCES:
        listed = f"{difference.title!r} is listed, but"
        if difference.addition:
            played, count = re.subn(difference.addition.regex, "", played)
            if not count and difference.addition.scenario == scenario.name:
                yield f"{listed} amqp-broker does not add {difference.addition.regex!r}"
        if difference.omission:
            expected, count = re.subn(difference.omission.regex, "", expected)
            if not count and difference.omission.scenario == scenario.name:
                yield f"{listed} RabbitMQ does not send {difference.omission.regex!r}"
        if difference.rewrite:
            rewritten = re.sub(difference.rewrite.regex, difference.rewrite.replacement, expected)
            if rewritten == expected and difference.rewrite.scenario == scenario.name:
                yield f"{listed} RabbitMQ does not send {difference.rewrite.regex!r}"
            expected = rewritten
        for change in difference.changes:
            if change.scenario != scenario.name:
                continue
            if change.rabbitmq not in expected:
                yield f"{listed} RabbitMQ does not send {change.rabbitmq!r}"
            expected = expected.replace(change.rabbitmq, change.answered)
    if expected != played:
        yield "\n".join(
            difflib.unified_diff(
                expected.splitlines(),
                played.splitlines(),
                "RabbitMQ, listed differences aside",
                "amqp-broker",
                lineterm="",
            )
        )
