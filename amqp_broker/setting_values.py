"""What the values of settings may be, and how their texts are read: functions from a text to a value.

Each raises ValueError with what is wrong with the text, to be put after "which ".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

Reader: TypeAlias = Callable[[str], Any]

PORT_MAX: Final = 65_535
FRAME_MAX_LOWEST: Final = 4096
FRAME_MAX_HIGHEST: Final = 2**31 - 1

_UNITS: Final[dict[str, int]] = {
    "": 1,
    **{unit: 1024 ** (power + 1) for power, letter in enumerate("kmgt") for unit in (letter, f"{letter}ib")},
    **{f"{letter}b": 1000 ** (power + 1) for power, letter in enumerate("kmgt")},
}
_AMOUNT: Final = re.compile(r"(\d+(?:\.\d+)?)(%|(?:[kmgt](?:i?b)?)?)", re.IGNORECASE)
_FRAME: Final = re.compile(r"(\d+)(|kb|mb)", re.IGNORECASE)
_FRAME_UNITS: Final = {"": 1, "kb": 1024, "mb": 1024 * 1024}

SWITCHES: Final = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False}
SWITCHES.update({"off": False, "": False})

# RabbitMQ's levels, and what they are for us.
LEVELS: Final = {
    **{level: level for level in ("debug", "info", "warning", "error")},
    "notice": "info",
    **dict.fromkeys(("critical", "alert", "emergency"), "error"),
    "none": "critical",
}


def text(given: str) -> str:
    return given


def number(given: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", given):
        raise ValueError("is not a whole number")
    return int(given)


def number_or_none(given: str) -> int | None:
    """A limit; `infinity` is none."""
    return None if given == "infinity" else number(given)


def port(given: str) -> int:
    if not re.fullmatch(r"-?[0-9]+", given):
        raise ValueError("is not a whole number")
    if not 0 <= int(given) <= PORT_MAX:
        raise ValueError(f"is not between 0 and {PORT_MAX}")
    return int(given)


def short(given: str) -> int:
    """What AMQP tells in 16 bits."""
    if number(given) > PORT_MAX:
        raise ValueError(f"is not between 0 and {PORT_MAX}")
    return int(given)


def frame_size(given: str) -> int:
    """Octets; a KB is 1024 of them here (cuttlefish_bytesize.erl)."""
    found = _FRAME.fullmatch(given)
    octets = int(found[1]) * _FRAME_UNITS[found[2].lower()] if found else 0
    if not FRAME_MAX_LOWEST <= octets <= FRAME_MAX_HIGHEST:
        raise ValueError(f"is not a size between {FRAME_MAX_LOWEST} and {FRAME_MAX_HIGHEST}")
    return octets


def switch(given: str) -> bool:
    if given.lower() not in SWITCHES:
        raise ValueError("is neither true nor false")
    return SWITCHES[given.lower()]


def amount(given: str) -> str:
    """How much of what there is, or in octets; see `octets`."""
    if given and _AMOUNT.fullmatch(given) is None:
        raise ValueError("is not an amount like 2GB")
    return given


def pattern(given: str) -> str:
    try:
        re.compile(given)
    except re.error:
        raise ValueError("is not a regular expression") from None
    return given


def level(given: str) -> str:
    if given not in (*LEVELS, ""):
        raise ValueError("is none of debug, info, warning, error")
    return LEVELS.get(given, "")


def one_of(*names: str) -> Reader:
    """Reads one of these."""

    def read(given: str) -> str:
        if given not in names:
            raise ValueError(f"is none of {', '.join(name for name in names if name)}")
        return given

    return read


def octets(amount: str, whole: int) -> int:
    """How many an amount is: octets, with a unit or not; a number up to 1, or with a point, is a share of `whole`.

    Units are RabbitMQ's: kB is 1000, KiB and K are 1024 (rabbit_resource_monitor_misc.erl).
    """
    found = _AMOUNT.fullmatch(amount)
    assert found is not None, amount
    number, unit = found.groups()
    if unit == "%":
        return round(float(number) * whole / 100)
    if not unit and ("." in number or int(number) <= 1):
        return round(float(number) * whole)
    return round(float(number) * _UNITS[unit.lower()])
