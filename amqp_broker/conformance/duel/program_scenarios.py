"""The recorded programs as scenarios. A transcript ends with the first step that is answered differently."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from amqp_broker.conformance.duel.http_steps import limits_queues, uses_http
from amqp_broker.conformance.duel.player import Lines, Player
from amqp_broker.conformance.duel.program_records import Recorded, load
from amqp_broker.conformance.duel.steps import SHORT_MS, Wait, has_short_time
from amqp_broker.conformance.duel.watching import Observer, WatchedLab
from amqp_broker.conformance.lab import Lab, Scenario
from amqp_broker.conformance.records import Transcripts
from amqp_broker.conformance.terms import TOO_SLOW, Skipped

AREA = "random_programs"
# Steps that take longer than this may miss a short time of their program.
LATE_S = 0.8 * SHORT_MS / 1000
# The channel of a line, or the lab that has asked.
_RECEIVED = re.compile(r"(?:[a-d]\d+|lab)(?= )")


def questions_of_programs() -> list[str]:
    """Return the names of all recorded programs."""
    return [_question(number) for number in range(1, len(load()) + 1)]


def _question(number: int) -> str:
    return f"{AREA}/program_{number:04}"


class ProgramScenarios:
    """The programs that all of these versions answer alike; `scenarios` are theirs.

    Programs that limit the number of queues are left out: those that are played beside them would count.
    A play adds what is expected to `transcripts`, the recorded ones by version.
    """

    def __init__(self, transcripts: Mapping[str, Transcripts], has_api: bool) -> None:
        self._transcripts = transcripts
        self.scenarios = [
            Scenario(
                _question(number).partition("/")[2],
                AREA,
                partial(self._play, number, one),
                is_slow=any(isinstance(step, Wait) for step in one.program),
                lab=WatchedLab,
            )
            for number, one in enumerate(load(), 1)
            if one.oracles
            and transcripts.keys() <= set(one.oracles)
            and (has_api or not uses_http(one.program))
            and not limits_queues(one.program)
        ]

    def _play(self, number: int, one: Recorded, lab: Lab) -> None:
        assert isinstance(lab, WatchedLab)
        observer = Observer(lab.broker, lab.terms)
        player = Player(lab, observer)
        lab.transcript.is_muted = True
        try:
            player.play(one.program, one.windows)
        finally:
            player.undo()
            observer.close()
        # A message may have expired before a step that came in time when it was recorded.
        is_late = player.unbroken_s > LATE_S and any(map(has_short_time, one.program))
        if is_late and player.windows != one.windows[: len(player.windows)]:
            raise Skipped(TOO_SLOW)
        # A play ends early where RabbitMQ's order is open.
        expected = _transcript(player.sent, one.windows[: len(player.windows)])
        for transcripts in self._transcripts.values():
            transcripts[_question(number)] = [expected]
        lab.transcript.lines += _transcript(player.sent, player.windows)


def _transcript(sent: Sequence[Lines], windows: Sequence[Lines]) -> Lines:
    """Return the steps that were played, each with what was received."""
    lines = []
    for steps, window in zip(sent, windows, strict=False):
        lines += [f"lab> {step}" for step in steps]
        lines += [_shown(line) for line in window]
    return lines


def _shown(line: str) -> str:
    label = _RECEIVED.match(line)
    if label:
        return f"{label[0]}<{line[label.end() :]}"
    return line if line.startswith("STOPPED") else f"lab< {line}"
