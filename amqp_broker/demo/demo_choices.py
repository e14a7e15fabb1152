"""The choices for a demo at a broker: strategy, messages, rate, window, seed and faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from amqp_broker.demo.fault_plan import KINDS, RESTART, SEED_MAX
from amqp_broker.demo.strategies import STRATEGIES, Strategy

ALL: Final = "all"
# The faults that a broker can have without an end of its process.
FAULTS: Final = tuple(name for name in KINDS if name != RESTART)
# Lowest, highest and usual values.
NUMBERS: Final = {
    "messages": (1, 10_000, 500),
    "rate": (0, 10_000, 100),
    "window": (1, 1000, 50),
    "seed": (0, SEED_MAX, 1),
}


@dataclass(frozen=True)
class DemoChoices:
    """The choices for one demo. `rate` is in messages per second, 0 without a limit."""

    strategy: str = "async"
    messages: int = NUMBERS["messages"][2]
    rate: int = NUMBERS["rate"][2]
    window: int = NUMBERS["window"][2]
    seed: int = NUMBERS["seed"][2]
    faults: tuple[str, ...] = FAULTS

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> DemoChoices:
        """Return the choices that JSON describes; those left out are the usual ones. Raise ValueError."""
        names = [one.name for one in fields(cls)]
        if unknown := [name for name in given if name not in names]:
            raise ValueError(f"the demo has no '{unknown[0]}', but {', '.join(names)}")
        strategy = given.get("strategy", cls.strategy)
        if strategy not in (*STRATEGIES, ALL):
            raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)} or {ALL}, not {strategy!r}")
        for name, (low, high, _) in NUMBERS.items():
            value = given.get(name, low)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise ValueError(f"{name} must be a whole number from {low} to {high}, not {value!r}")
        faults = given.get("faults", FAULTS)
        if not isinstance(faults, (list, tuple)):
            raise ValueError(f"faults must be an array of names: {', '.join(FAULTS)}")
        for name in faults:
            if name not in FAULTS:
                raise ValueError(f"there is no fault {name!r}; there are: {', '.join(FAULTS)}")
        return cls(**{**given, "faults": tuple(faults)})

    @property
    def strategies(self) -> list[Strategy]:
        return list(STRATEGIES.values()) if self.strategy == ALL else [STRATEGIES[self.strategy]]


def offered() -> dict[str, Any]:
    """Return what can be chosen, as JSON values."""
    return {
        "strategies": [
            *({"name": one.name, "sentence": one.sentence, "promise": one.promise} for one in STRATEGIES.values()),
            {"name": ALL, "sentence": "runs every strategy, one after the other", "promise": "each its own"},
        ],
        "faults": [{"name": name, "sentence": KINDS[name](3)[0].replace("3 ", "some ")} for name in FAULTS],
        "numbers": {name: {"min": low, "max": high, "usual": usual} for name, (low, high, usual) in NUMBERS.items()},
    }
