"""Targets of the fuzzer: functions of octets that raise Failure.

Seeds, words and mutations of their own help to get behind the first check.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from importlib import import_module
from random import Random
from typing import NamedTuple

NAMES = (
    "field_table",
    "property_list",
    "method",
    "session",
    "client",
    "http",
    "definitions",
    "conf",
    "erlang",
    "eval",
    "record",
    "store_file",
    "capture",
    "snapshot",
)


class Failure(Exception):
    """The code under test did what it may never do."""


class Target(NamedTuple):
    """A surface that others send octets to.

    `check` raises Failure, or any other exception that the code under test should not have raised. `seeds` are inputs
    from real data. `mutate` changes the structure of an input, for octets that are refused at once if they are
    changed at random; `words` are tokens that the fuzzer inserts.
    """

    check: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    mutate: Callable[[Random, bytes], bytes] | None = None
    words: tuple[str, ...] = ()
    octets_max: int = 4096


def load(name: str) -> Target:
    """Return a target. Its module is imported here, so that a fuzzer can instrument what it imports."""
    target: Target = import_module(f"tests.fuzzing.targets.{name}").TARGET
    return target


def silence() -> None:
    """Print nothing of what the broker logs: each input is an error of a client."""
    logger = logging.getLogger("amqp_broker")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def attempt(target: Target, data: bytes) -> None:
    """Give octets to a target. Raise Failure."""
    try:
        target.check(data)
    except Failure:
        raise
    except Exception as error:
        raise Failure(f"{type(error).__name__}: {error}") from error


def expect(is_true: object, what: str) -> None:
    """Raise Failure with a sentence if a condition does not hold."""
    if not is_true:
        raise Failure(what)
