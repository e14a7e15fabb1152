"""A nemesis: faults in a vhost, one after another, as a seed draws them.

A *stroke* is a fault rule that is in force for some time. Strokes follow each other with pauses. The same seed draws
the same rules and times; which messages they hit depends on the clients. Time is the broker's: advancing the clock
brings the next strokes. The name is that of Jepsen's processes that cause faults (Kingsbury, "Jepsen").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.lab.dice import SEED_BYTES, Dice
from amqp_broker.broker.lab.fault_rules import (
    ACK,
    CONFIRM,
    COUNT_MAX,
    DELIVER,
    NOW,
    OPEN,
    PUBLISH,
    TIME_MAX_MS,
    Rule,
)

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.scheduling.timers import Timer
    from amqp_broker.broker.vhost import VHost

PACE_MS: Final = 2000
PACE_MIN_MS: Final = 10
DURATION_MS: Final = 60_000
# The last strokes that are kept.
STROKES_MAX: Final = 1000
# One of three faults that can come in the middle of a frame does.
MID_FRAME_ONCE_IN: Final = 3


class Choice(NamedTuple):
    """The choice for an action: its moments, its most hits (0: no limit), and the range of its number."""

    moments: tuple[str, ...]
    times: int = 0
    number: str = ""
    least: int = 0
    most: int = 0


_ENDING: Final = (NOW, PUBLISH, CONFIRM, DELIVER)
# By action. None loses a message that the broker has confirmed, and none affects another vhost.
CHOICES: Final[Mapping[str, Choice]] = {
    "confirm_nack": Choice((PUBLISH,), 5),
    "confirm_drop": Choice((PUBLISH,), 3),
    "confirm_delay": Choice((PUBLISH,), 5, "delay_ms", 10, 2000),
    "return": Choice((PUBLISH,), 3),
    "close_channel": Choice(_ENDING, 1),
    "close_connection": Choice(_ENDING, 1),
    "cut": Choice(_ENDING, 1),
    "reset": Choice(_ENDING, 1),
    "black_hole": Choice((PUBLISH, CONFIRM), 1),
    "block": Choice((PUBLISH,), 1, "duration_ms", 100, 3000),
    "latency": Choice((NOW, OPEN), 0, "delay_ms", 10, 300),
    "bandwidth": Choice((NOW, OPEN), 0, "bytes_per_s", 10_000, 1_000_000),
    "duplicate": Choice((DELIVER,), 3),
    "delay_delivery": Choice((DELIVER,), 5, "delay_ms", 10, 2000),
    "hold_delivery": Choice((DELIVER,), 3),
    "cancel_consumer": Choice((DELIVER,), 1),
    "drop_ack": Choice((ACK,), 2),
}
_IN_FRAMES: Final = ("cut", "reset")


class Stroke:
    """A fault rule of a nemesis; `begun_ms` and `ended_ms` count from the begin of the nemesis, None is to come."""

    def __init__(self, rule: Rule, begun_ms: int) -> None:
        self.rule = rule
        self.fault_id = 0
        self.begun_ms = begun_ms
        self.ended_ms: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the stroke for JSON: its times, and the rule with its counts."""
        rule = {**self.rule.as_dict(), "id": self.fault_id}
        return {"begun_ms": self.begun_ms, "ended_ms": self.ended_ms, "fault": rule}


class Nemesis:
    """The nemesis of a vhost. It works until its time is over, or until `end`; `strokes` are the last ones.

    `pace_ms` is the mean length of a stroke, and of a pause. Raise InvalidParameter for impossible values.
    """

    def __init__(
        self,
        broker: Broker,
        vhost: VHost,
        *,
        seed: int | None = None,
        duration_ms: int = DURATION_MS,
        pace_ms: int = PACE_MS,
        actions: Sequence[str] = (),
    ) -> None:
        for name, value, least, most in (
            ("seed", 0 if seed is None else seed, 0, COUNT_MAX),
            ("duration_ms", duration_ms, 1, TIME_MAX_MS),
            ("pace_ms", pace_ms, PACE_MIN_MS, TIME_MAX_MS),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InvalidParameter(f"{name} must be a whole number from {least} to {most}, not {value!r}")
        if not isinstance(actions, list | tuple):
            raise InvalidParameter(f"actions must be a list, not {actions!r}")
        if unknown := [action for action in actions if not isinstance(action, str) or action not in CHOICES]:
            raise InvalidParameter(f"a nemesis has no action {unknown[0]!r}, but {', '.join(CHOICES)}")
        self.vhost = vhost
        self.seed = int.from_bytes(broker.entropy(SEED_BYTES), "big") if seed is None else seed
        self.duration_ms = duration_ms
        self.pace_ms = pace_ms
        self.actions = tuple(dict.fromkeys(actions)) or tuple(CHOICES)
        self.strokes: deque[Stroke] = deque(maxlen=STROKES_MAX)
        self.stroke_count = 0
        self._ended_at_ms: int | None = None
        self._broker = broker
        self._dice = Dice(self.seed)
        self._begun_ms = broker.now
        self._timer: Timer | None = None
        self._wait(self._strike)

    def as_dict(self) -> dict[str, Any]:
        """Return the nemesis for JSON, with its strokes in the order of time."""
        return {
            "vhost": self.vhost.name,
            "seed": self.seed,
            "duration_ms": self.duration_ms,
            "pace_ms": self.pace_ms,
            "actions": list(self.actions),
            "elapsed_ms": self.elapsed_ms,
            "is_over": self.is_over,
            "stroke_count": self.stroke_count,
            "strokes": [stroke.as_dict() for stroke in self.strokes],
        }

    @property
    def is_over(self) -> bool:
        return self._ended_at_ms is not None

    @property
    def elapsed_ms(self) -> int:
        """The time since the begin, until its end."""
        now = self._broker.now if self._ended_at_ms is None else self._ended_at_ms
        return min(now - self._begun_ms, self.duration_ms)

    def end(self) -> None:
        """End the nemesis and its stroke."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._ended_at_ms is None:
            self._ended_at_ms = self._broker.now
        self._end_stroke()

    def _wait(self, then: Callable[[int], None]) -> None:
        """Do the next thing after a time that is drawn, or end."""
        wait_ms = self._drawn(self.pace_ms // 2, self.pace_ms * 3 // 2)
        left_ms = self._begun_ms + self.duration_ms - self._broker.now
        at_ms = self._broker.now + max(0, min(wait_ms, left_ms))
        self._timer = self._broker.timers.at(at_ms, then if wait_ms < left_ms else self._finish)

    def _finish(self, now: int) -> None:
        self._broker.now = now
        self.end()

    def _strike(self, now: int) -> None:
        self._broker.now = now
        if self._broker.vhosts.get(self.vhost.name) is not self.vhost:
            self.end()
            return
        stroke = Stroke(self._drawn_rule(), self.elapsed_ms)
        try:
            stroke.fault_id = self._broker.faults.add(stroke.rule).id
        except InvalidParameter:
            # There are too many rules: the next stroke may have room.
            self._wait(self._strike)
            return
        self.strokes.append(stroke)
        self.stroke_count += 1
        self._wait(self._pause)

    def _pause(self, now: int) -> None:
        self._broker.now = now
        self._end_stroke()
        self._wait(self._strike)

    def _end_stroke(self) -> None:
        stroke = self.strokes[-1] if self.strokes else None
        if stroke is not None and stroke.ended_ms is None:
            stroke.ended_ms = self.elapsed_ms
            # A removed rule has no id.
            if stroke.rule.id:
                self._broker.faults.remove(stroke.rule.id)

    def _drawn_rule(self) -> Rule:
        action = self.actions[self._drawn(0, len(self.actions) - 1)]
        choice = CHOICES[action]
        moment = choice.moments[self._drawn(0, len(choice.moments) - 1)]
        rule = Rule(action, moment, self.vhost.name, seed=self._drawn(0, 2**31))
        if choice.times and moment != NOW:
            rule.times = self._drawn(1, choice.times)
        if choice.number:
            setattr(rule, choice.number, self._drawn(choice.least, choice.most))
        if action in _IN_FRAMES:
            rule.is_mid_frame = self._drawn(1, MID_FRAME_ONCE_IN) == 1
        return rule

    def _drawn(self, least: int, most: int) -> int:
        return least + self._dice.below(most - least + 1)


def stroke_line(stroke: dict[str, Any]) -> str:
    """Return a stroke on one line: when it began, the rule, and how often it has hit."""
    fault = stroke["fault"]
    # The reply is the usual one of the action.
    left_out = ("id", "action", "on", "vhost", "seed", "matched", "hits", "is_spent", "held", "allowed", "code", "text")
    given = "".join(f" {name}={value}" for name, value in fault.items() if name not in left_out)
    hits = "hit nothing" if not fault["hits"] else "1 hit" if fault["hits"] == 1 else f"{fault['hits']} hits"
    return f"{stroke['begun_ms'] / 1000:8.2f} s  {fault['action']} on {fault['on']}{given}: {hits}"
