"""The verdict on a scenario: whether a transcript is among RabbitMQ's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from amqp_broker.conformance.comparing import fields
from amqp_broker.conformance.lab import STOPPED, Scenario
from amqp_broker.conformance.records import Transcripts
from amqp_broker.conformance.scenario_connection import CHANNEL_MAX, FRAME_MAX, SILENT

# Values that an administrator sets, or in which a broker introduces itself.
_SETTINGS = re.compile(r"(?<=[ {])((?:channel_max|frame_max|heartbeat)=\d+|mechanisms=\{[^}]*\}|product: S'[^']*')")
_OF_SETTINGS = ("connection.start ", "connection.tune ", "connection.tune-ok ")
_CREDENTIALS = re.compile(r"(connection\.start-ok .*\bresponse=)(b?'[^']*'|b?\"[^\"]*\")")
# RabbitMQ cuts reply texts at 255 octets, the sooner the longer the names of a run are.
_LONG_TEXT = re.compile(r'((?:reply_text=|"reason": )"[^"]{150})[^"]*')
# Words of answers that depend on the limits which a node offers.
_LIMITS = re.compile(rf"\b({CHANNEL_MAX}|{FRAME_MAX})\b|    frames \[")


class Verdict(Enum):
    AGREES = "agrees"
    DIFFERS = "differs"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Judged:
    """A scenario that was played or skipped; the transcripts are those of a difference."""

    scenario: Scenario
    verdict: Verdict
    # The reason to skip it.
    reason: str = ""
    # Methods and fields that differ: `basic.deliver redelivered`.
    places: tuple[str, ...] = ()
    # The recorded version whose answer is closest, and that answer.
    oracle: str = ""
    expected: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()

    @property
    def is_silence(self) -> bool:
        """The scenario stopped because the broker did not answer."""
        return bool(self.seen) and self.seen[-1].startswith(f"{STOPPED} {SILENT}")


class Judge:
    """Compares transcripts with those of the accepted versions of RabbitMQ, by version."""

    def __init__(self, recorded: Mapping[str, Transcripts], limits: tuple[int, int]) -> None:
        self._recorded = recorded
        self._limits = limits

    def reason_to_skip(self, scenario: Scenario) -> str:
        """Return why the answer is a setting of the node, or an empty text."""
        if self._limits == (CHANNEL_MAX, FRAME_MAX) or not self._depends_on_limits(scenario):
            return ""
        channel_max, frame_max = self._limits
        return (
            f"the broker offers channel_max={channel_max} and frame_max={frame_max}, not {CHANNEL_MAX} and {FRAME_MAX}"
        )

    def _depends_on_limits(self, scenario: Scenario) -> bool:
        return any(
            _LIMITS.search(neutral(line))
            for transcripts in self._recorded.values()
            for lines in transcripts.get(scenario.question, [])
            for line in lines
        )

    def judge(self, scenario: Scenario, lines: Sequence[str]) -> Judged:
        """Return the verdict on the transcript of a scenario."""
        seen, closest, distance = [neutral(line) for line in lines], None, 0
        for oracle, transcripts in self._recorded.items():
            for recorded in transcripts.get(scenario.question, []):
                expected = [neutral(line) for line in recorded]
                if expected == seen:
                    return Judged(scenario, Verdict.AGREES)
                places = fields(scenario.question, expected, seen)
                if closest is None or len(places) < distance:
                    closest, distance = _difference(scenario, oracle, places, expected, seen), len(places)
        if closest is None:
            return Judged(scenario, Verdict.SKIPPED, "RabbitMQ's answer is not recorded")
        return closest


def _difference(scenario: Scenario, oracle: str, places: set[str], expected: list[str], seen: list[str]) -> Judged:
    if seen and seen[-1].startswith(STOPPED) and seen[-1] not in expected:
        # This is why all other lines are missing.
        places = {seen[-1]}
    for word, clearer in ((": not here", ": missing"), (": only here", ": not expected")):
        places = {place.replace(word, clearer) for place in places}
    return Judged(scenario, Verdict.DIFFERS, "", tuple(sorted(places)), oracle, tuple(expected), tuple(seen))


def neutral(line: str) -> str:
    """Return a line without settings, credentials and the ends of long reply texts."""
    line = _LONG_TEXT.sub(r"\1…", line)
    line = _CREDENTIALS.sub(r"\1<credentials>", line)
    if any(name in line for name in _OF_SETTINGS):
        return _SETTINGS.sub(lambda match: re.split("[=:]", match[0])[0] + "=<setting>", line)
    return line
