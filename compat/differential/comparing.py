"""Two transcripts of a scenario become a verdict."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping

from compat.differential.differences import DIFFERENCES
from compat.differential.lab import STOPPED, Scenario
from compat.differential.running import OURS, RABBITMQ


def problems(scenario: Scenario, transcripts: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with our transcript, in words or as a diff; nothing if it is what it should be."""
    for broker, transcript in transcripts.items():
        if STOPPED in transcript:
            yield f"{broker}: {transcript[transcript.index(STOPPED) :].strip()}"
    expected, ours = transcripts[RABBITMQ], transcripts[OURS]
    for difference in DIFFERENCES:
        if difference.additions:
            ours = re.sub(difference.additions, "", ours)
        if difference.omissions:
            expected = re.sub(difference.omissions, "", expected)
        for change in difference.changes:
            if change.scenario != scenario.name:
                continue
            if change.rabbitmq not in expected:
                yield f"{difference.title!r} is listed, but RabbitMQ does not say {change.rabbitmq!r}"
            expected = expected.replace(change.rabbitmq, change.ours)
    if expected != ours:
        yield "\n".join(
            difflib.unified_diff(
                expected.splitlines(), ours.splitlines(), "RabbitMQ, but for what is listed", "our broker", lineterm=""
            )
        )
