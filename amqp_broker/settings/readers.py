"""Readers of the values of settings: functions from a text to a value.

Each raises ValueError with a clause that completes "which ...": "is not a whole number".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

Reader: TypeAlias = Callable[[str], Any]

PORT_MAX: Final = 65_535
FRAME_MAX_LOWEST: Final = 4096
# Also stands for no limit.
FRAME_MAX_HIGHEST: Final = 2**31 - 1

_UNITS: Final[dict[str, int]] = {
    **dict.fromkeys(("", "b"), 1),
    **{
        unit: 1024 ** (power + 1)
        for power, letter in enumerate("kmgt")
        for unit in (letter, f"{letter}i", f"{letter}ib")
    },
    **{f"{letter}b": 1000 ** (power + 1) for power, letter in enumerate("kmgt")},
}
_AMOUNT: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(%|b|(?:[kmgt](?:i?b?)?)?)", re.IGNORECASE)
_FRAME: Final = re.compile(r"([0-9]{1,18})(|kb|mb)", re.IGNORECASE)
_FRAME_UNITS: Final = {"": 1, "kb": 1024, "mb": 1024 * 1024}
_BYTE_SIZE: Final = re.compile(r"([0-9]{1,18})(|kb|mb|gb)", re.IGNORECASE)
_BYTE_SHIFTS: Final = {"": 0, "kb": 10, "mb": 20, "gb": 30}
_PARTS_OF_DURATION: Final = re.compile(r"([0-9]{0,18}\.?[0-9]{1,18})(ms|[smhdwf])", re.IGNORECASE)
_DURATION: Final = re.compile(f"(?:{_PARTS_OF_DURATION.pattern})+", re.IGNORECASE)
_DURATIONS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATIONS_MS.update({"w": 7 * 86_400_000, "f": 14 * 86_400_000})

# Backends of logins, beside which RabbitMQ has more.
AUTH_BACKENDS: Final = frozenset({"internal", "http", "cache"})

# Versions of TLS by Erlang's names.
TLS_VERSIONS: Final = ("tlsv1", "tlsv1.1", "tlsv1.2", "tlsv1.3")

SWITCHES: Final = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False}
SWITCHES.update({"off": False, "": False})

# RabbitMQ's log levels, and those of this broker.
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


def positive(given: str) -> int:
    """Return a whole number above 0."""
    if number(given) == 0:
        raise ValueError("is not above 0")
    return int(given)


def number_or_names(given: str) -> int | list[str]:
    """Return a number, or the names of a list with commas."""
    return int(given) if given.isdecimal() else [name.strip() for name in given.split(",")]


def duration_ms(given: str) -> int:
    """Return milliseconds of a text like 1h30m (cuttlefish_duration.erl)."""
    found = _PARTS_OF_DURATION.findall(given) if _DURATION.fullmatch(given) else []
    duration = math.ceil(sum(float(number) * _DURATIONS_MS[unit.lower()] for number, unit in found))
    if duration <= 0:
        raise ValueError("is not a duration like 1h30m")
    return duration


def byte_size(given: str) -> int:
    """Return a number of bytes above 0; a KB is 1024 bytes here (cuttlefish_bytesize.erl)."""
    found = _BYTE_SIZE.fullmatch(given)
    octets = int(found[1]) << _BYTE_SHIFTS[found[2].lower()] if found else 0
    if octets == 0:
        raise ValueError("is not a size like 100MB")
    return octets


def number_or_none(given: str) -> int | None:
    """Return a limit; None for `infinity`."""
    return None if given == "infinity" else number(given)


def port(given: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", given):
        raise ValueError("is not a whole number")
    if not 0 <= int(given) <= PORT_MAX:
        raise ValueError(f"is not between 0 and {PORT_MAX}")
    return int(given)


def addresses(given: str) -> str:
    """Return ports, or addresses with ports, between white space."""
    for word in given.split():
        try:
            port(word.rpartition(":")[2])
        except ValueError:
            raise ValueError(f"has '{word}', which is neither a port nor an address and a port") from None
    return given


def short(given: str) -> int:
    """Return an unsigned integer of 16 bits."""
    if number(given) > PORT_MAX:
        raise ValueError(f"is not between 0 and {PORT_MAX}")
    return int(given)


def frame_size(given: str) -> int:
    """Return bytes; a KB is 1024 bytes here (cuttlefish_bytesize.erl)."""
    found = _FRAME.fullmatch(given)
    octets = int(found[1]) * _FRAME_UNITS[found[2].lower()] if found else 0
    if not FRAME_MAX_LOWEST <= octets <= FRAME_MAX_HIGHEST:
        raise ValueError(f"is not a size between {FRAME_MAX_LOWEST} and {FRAME_MAX_HIGHEST}")
    return octets


def frame_size_or_unlimited(given: str) -> int:
    """Return bytes; the highest size for 0, which is no limit."""
    return FRAME_MAX_HIGHEST if given == "0" else frame_size(given)


def frame_size_or_default(given: str) -> int:
    """Return bytes; 0 where the version has a size."""
    return 0 if given == "0" else frame_size(given)


def switch(given: str) -> bool:
    if given.lower() not in SWITCHES:
        raise ValueError("is neither true nor false")
    return SWITCHES[given.lower()]


def amount(given: str) -> str:
    """Return the text of a share or of a number of bytes; see `octets`."""
    if given and _AMOUNT.fullmatch(given) is None:
        raise ValueError("is not an amount like 2GB")
    return given


def path_prefix(given: str) -> str:
    """Return a path that begins with / and does not end with it; "" for none."""
    if not re.fullmatch(r"[\w.~!$&'()*+,;=:@%/-]*", given, re.ASCII):
        raise ValueError("is not a path")
    return "/".join(["", *given.strip("/").split("/")]).rstrip("/")


def pattern(given: str) -> str:
    try:
        re.compile(given)
    except re.error:
        raise ValueError("is not a regular expression") from None
    return given


def json_object(given: str) -> str:
    # Few settings are JSON, and the import slows the start.
    import json

    try:
        is_object = isinstance(json.loads(given or "{}"), dict)
    except ValueError:
        is_object = False
    if not is_object:
        raise ValueError("is not an object of JSON")
    return given


def auth_backends(given: str) -> str:
    """Return the words of a chain of backends (`broker/backends/login_chain.py`)."""
    for word in given.split():
        authn, bar, authz = word.partition("|")
        if not {authn, *(authz.split("+") if bar else [])} <= AUTH_BACKENDS:
            raise ValueError(f"has a backend that is none of {', '.join(sorted(AUTH_BACKENDS))}")
    return given


def http_url(given: str) -> str:
    """Return the URL of a service."""
    if not re.fullmatch(r"https?://[^\s/?#]+[^\s#]*", given, re.IGNORECASE):
        raise ValueError("is not a URL of HTTP or HTTPS")
    return given


def level(given: str) -> str:
    if given not in LEVELS:
        raise ValueError("is not one of debug, info, warning, error")
    return LEVELS[given]


def level_or_none(given: str) -> str:
    """Return a level; "" where another setting has it."""
    return level(given) if given else ""


def tls_versions(given: str) -> str:
    """Return versions of TLS, separated by spaces."""
    names = given.replace(",", " ").split()
    for name in names:
        if name not in TLS_VERSIONS:
            raise ValueError(f"has '{name}', which is no version of TLS like tlsv1.3")
    return " ".join(names)


def one_of(*names: str) -> Reader:
    """Return a reader that accepts these texts."""

    def read(given: str) -> str:
        if given not in names:
            raise ValueError(f"is not one of {', '.join(name for name in names if name)}")
        return given

    return read


def octets(amount: str, whole: int) -> int:
    """Return the bytes of an amount; a number up to 1, or with a decimal point, is a share of `whole`.

    `1B` is one octet. The other units are RabbitMQ's: kB is 1000, KiB and K are
    1024 (rabbit_resource_monitor_misc.erl).
    """
    found = _AMOUNT.fullmatch(amount)
    assert found is not None, amount
    number, unit = found.groups()
    if unit == "%":
        return round(float(number) * whole / 100)
    if not unit and ("." in number or int(number) <= 1):
        return round(float(number) * whole)
    return round(float(number) * _UNITS[unit.lower()])
