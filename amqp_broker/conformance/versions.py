"""Versions of RabbitMQ, and the recorded ones whose answers count for each."""

from __future__ import annotations

import re

from amqp_broker.conformance.records import ORACLES

# Versions that refuse transient queues are asked about durable ones, wherever any kind will do.
ASKED_ABOUT_DURABLE = {"4.0", "4.3"}


class UnknownVersion(Exception):
    """No recorded answers come close; the text is a sentence."""


def accepted(version: str) -> tuple[str, ...]:
    """Return the recorded versions whose answers count for a version: `4.3` for 4.3.1, `4.0` and `4.3` for 4.1.

    A version between two that were asked the same may answer as either. Raise UnknownVersion.
    """
    found = re.fullmatch(r"(\d{1,4})\.(\d{1,4})(?:[.+-].*)?", version)
    wanted = (int(found[1]), int(found[2])) if found else (0, 0)
    if not _numbers(ORACLES[0]) <= wanted <= _numbers(ORACLES[-1]):
        known = f"{', '.join(ORACLES[:-1])} or {ORACLES[-1]}"
        raise UnknownVersion(f"no answers of RabbitMQ '{version}' are known: choose {known}, or a version between them")
    older = [oracle for oracle in ORACLES if _numbers(oracle) <= wanted][-1]
    newer = next(oracle for oracle in ORACLES if _numbers(oracle) >= wanted)
    if (older in ASKED_ABOUT_DURABLE) is not (newer in ASKED_ABOUT_DURABLE):
        return (older,)
    return (older,) if older == newer else (older, newer)


def guessed(product: str, version: str) -> str:
    """Return the version to compare with: the broker's own if it says to be RabbitMQ, or the newest."""
    if product == "RabbitMQ":
        try:
            accepted(version)
        except UnknownVersion:
            return ORACLES[-1]
        return version
    return ORACLES[-1]


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)
