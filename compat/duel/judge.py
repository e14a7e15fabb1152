"""The judge of a program: plays it at both brokers, and again where they differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, zip_longest

from amqp_broker.conformance.api_client import HttpApi
from amqp_broker.conformance.duel.http_steps import EVERYTHING
from amqp_broker.conformance.duel.player import Lines, Pace, Player
from amqp_broker.conformance.duel.steps import Program
from amqp_broker.conformance.duel.watching import Observer, WatchedLab
from amqp_broker.conformance.terms import Terms
from amqp_broker.settings.profiles import DEFAULT
from compat.brokers import AmqpBroker
from compat.duel.allowed import is_allowed, normalized
from compat.oracles.rabbitmq import RabbitMQ

# A program that differs is played again at each of these paces. Where deadlines pass between other steps at another
# pace, its answers depend on how busy the machine is. Processes of RabbitMQ race, and one may win several times.
SLOW = tuple(Pace(step_s=step_s, quiet_s=0.05) for step_s in (0.06, 0.04, 0.1, 0.06, 0.05, 0.02, 0.06, 0.08))
# amqp-broker is at rest when two looks are equal.
OWN = Pace(quiet_s=0.0)
SILENCE_S = 10.0

# All oracles answer so; each differs alike; a broker itself answers differently; only without time to rest; where
# two oracles are compared, each differs elsewhere; and a difference that is allowed.
AGREES, DIFFERS, UNSTABLE, HASTY, BETWEEN = "agrees", "differs", "unstable", "hasty", "between"
ALLOWED = "allowed"


class Corner:
    """A broker with a vhost for one judge."""

    def __init__(self, broker: AmqpBroker | RabbitMQ, vhost: str, pace: Pace, profile: str = DEFAULT) -> None:
        self.broker = broker
        self.pace = pace
        self.api = HttpApi(f"http://{broker.host}:{broker.management_port}", broker.user, broker.password)
        self.terms = Terms(vhost=vhost, silence_s=SILENCE_S, api=self.api)
        self.observer = Observer(broker, self.terms)
        self.profile = profile
        # The profile of amqp-broker that is compared, at each broker.
        self._normalize = partial(normalized, profile=profile)

    def prepare(self) -> None:
        """Add the vhost."""
        for path, body in ((f"vhosts/{self.terms.vhost}", None), (f"permissions/{self.terms.vhost}/guest", EVERYTHING)):
            assert self.api.ask("PUT", path, body).status < 300

    def play(
        self, program: Program, prefix: str, expected: list[Lines] | None = None, pace: Pace | None = None
    ) -> Player:
        """Play a program and remove its objects."""
        lab = WatchedLab(self.broker, self.terms, prefix)
        player = Player(lab, self.observer, pace or self.pace, self._normalize)
        try:
            player.play(program, expected)
        finally:
            player.clean_up()
        return player


@dataclass
class Verdict:
    """The outcome of a program; for a difference, the window in which it shows."""

    outcome: str
    index: int = 0
    theirs: Lines = field(default_factory=list)
    ours: Lines = field(default_factory=list)
    source: str = ""
    # A program that differs, made small, and as it was drawn.
    program: Program = ()
    drawn: Program = ()
    # Of a program that agrees, all windows, unless something is left out of them.
    windows: list[Lines] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """A short text that is equal for equal causes, mostly."""
        there = sorted({_word(line) for line in self.theirs if line not in self.ours})
        here = sorted({_word(line) for line in self.ours if line not in self.theirs})
        return " | ".join([*there, "vs", *here])


_QUEUE = re.compile(r"\bq\d\b")


def _word(line: str) -> str:
    """Return the counts of a queue, the text of a refusal, or the method of a line."""
    line = _QUEUE.sub("q", line)
    if line.startswith("q:"):
        return line
    _, _, text = line.partition("reply_text=")
    return re.sub(r"\d+", "N", text) if text else "".join(line.split()[1:2])


class Judge:
    """Compares the plays of programs at amqp-broker and at the oracles of its profile.

    A profile between two oracles may answer as either, so that a difference is one from both, in the same window. The
    brokers in `quirky` are amqp-broker, each with a quirk of RabbitMQ's (`quirks.py`): an answer as theirs may stay.
    """

    def __init__(
        self,
        ours: Corner,
        theirs: Sequence[Corner],
        number: int,
        quirky: Sequence[Corner] = (),
        paces: Sequence[Pace] = SLOW,
    ) -> None:
        self.ours = ours
        self.theirs = theirs
        self.quirky = quirky
        self.paces = paces
        self._prefixes = (f"{number:02x}{index:06x}." for index in count())

    def judge(self, program: Program) -> Verdict:
        """Judge a program: it agrees, it differs each time, or a reason against a judgement is found."""
        prefix = next(self._prefixes)
        own = self.ours.play(program, prefix)
        indexes = set()
        for corner in self.theirs:
            their = corner.play(program, prefix, own.windows)
            index = _first_difference(their.windows, own.windows)
            if index is None:
                return Verdict(AGREES, windows=[] if own.is_normalized or their.is_normalized else own.windows)
            indexes.add(index)
        if len(indexes) > 1:
            return Verdict(BETWEEN)
        return self._again(program[: indexes.pop() + 1])

    def differs_at_once(self, program: Program) -> Verdict:
        """Judge quickly, for the search of a smaller program: two plays at an oracle must differ alike."""
        prefix = next(self._prefixes)
        own = self.ours.play(program, prefix)
        verdict = Verdict(AGREES)
        for corner in self.theirs:
            theirs = corner.play(program, prefix, own.windows).windows
            index = _first_difference(theirs, own.windows)
            if index is None:
                return Verdict(AGREES)
            if corner.play(program, next(self._prefixes), own.windows).windows != theirs:
                return Verdict(UNSTABLE)
            if self._has_quirk(program, theirs[: index + 1], OWN):
                return Verdict(ALLOWED)
            verdict = _difference(own, theirs, index)
        return verdict

    def _again(self, program: Program) -> Verdict:
        """Play slowly, several times at each broker, and compare without haste."""
        own = self.ours.play(program, next(self._prefixes), pace=self.paces[0])
        found = []
        for corner in self.theirs:
            windows = corner.play(program, next(self._prefixes), pace=self.paces[0]).windows
            index = _first_difference(windows, own.windows)
            if index is None:
                return Verdict(HASTY)
            end = index + 1
            if windows[index:end] and windows[index][0].startswith("STOPPED"):
                # It was silent, as on a machine that has no time for it.
                return Verdict(UNSTABLE)
            for pace in self.paces[1:]:
                for player, former in ((corner, windows), (self.ours, own.windows)):
                    if player.play(program, next(self._prefixes), pace=pace).windows[:end] != former[:end]:
                        return Verdict(UNSTABLE)
            if self._has_quirk(program, windows[:end], self.paces[0]):
                return Verdict(ALLOWED)
            found.append(_difference(own, windows, index))
        if any(is_allowed(program, verdict.theirs, verdict.ours, self.ours.profile) for verdict in found):
            return Verdict(ALLOWED)
        return found[0] if len({verdict.index for verdict in found}) == 1 else Verdict(BETWEEN)

    def _has_quirk(self, program: Program, theirs: list[Lines], pace: Pace) -> bool:
        """Return whether amqp-broker answers so with a quirk of RabbitMQ's."""
        end = len(theirs)
        return any(
            corner.play(program, next(self._prefixes), pace=pace).windows[:end] == theirs for corner in self.quirky
        )


def _difference(own: Player, theirs: list[Lines], index: int) -> Verdict:
    missing: Lines = ["(the end)"]
    return Verdict(
        DIFFERS,
        index,
        theirs[index] if index < len(theirs) else missing,
        own.windows[index] if index < len(own.windows) else missing,
        own.source.text("found_by_the_duel"),
    )


def _first_difference(theirs: list[Lines], ours: list[Lines]) -> int | None:
    return next((index for index, pair in enumerate(zip_longest(theirs, ours)) if pair[0] != pair[1]), None)
