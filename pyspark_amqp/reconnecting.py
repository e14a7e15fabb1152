"""Waiting for a broker that is away: it restarts, or the network is down."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from pyspark import TaskContext

from pyspark_amqp.address import Address
from pyspark_amqp.errors import ConnectionLost, LoginRefused, OptionError, UnknownHost

T = TypeVar("T")

DELAY_S_MIN: Final = 0.1
DELAY_S_MAX: Final = 5.0
log = logging.getLogger("pyspark_amqp")


class Attempts:
    """The attempts since something was achieved; they end after the address's `reconnect_timeout_s`.

    They also end with the Java process that has started this one: it does not stop the processes of running queries.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._delay_s = DELAY_S_MIN
        self._parent = os.getppid()
        # By time.monotonic().
        self._deadline: float | None = None

    def failed(self, lost: ConnectionLost) -> None:
        """Wait before the next attempt, each time for longer.

        Raise ConnectionLost if the time is over, and OptionError if the name of the host or the password is wrong.
        """
        # When tasks run, the query has been planned, so name and password were right.
        if isinstance(lost, UnknownHost) and TaskContext.get() is None:
            raise OptionError(self.address.option, str(lost)) from None
        if isinstance(lost, LoginRefused) and TaskContext.get() is None:
            assert self.address.password_source is not None
            raise OptionError(self.address.password_source.option, str(lost)) from None
        if os.getppid() != self._parent:
            raise ConnectionLost(f"{lost} (Spark has ended)", lost.code) from None
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self.address.reconnect_timeout_s
        left_s = self._deadline - now
        if left_s <= 0:
            limit_s = f"{self.address.reconnect_timeout_s:g} s"
            raise ConnectionLost(f"{lost} (reconnectTimeout of {limit_s} is over)", lost.code) from None
        log.warning("%s; trying again for %.0f s", lost, left_s)
        # Tasks that lost the same broker do not return at the same moment.
        time.sleep(min(self._delay_s * random.uniform(0.5, 1.0), left_s))
        self._delay_s = min(2 * self._delay_s, DELAY_S_MAX)

    def succeeded(self) -> None:
        """Begin anew: a later loss has the whole time again."""
        self._delay_s = DELAY_S_MIN
        self._deadline = None


def persist(address: Address, act: Callable[[], T]) -> T:
    """Return the result of `act`, repeated while it loses its connection. Raise ConnectionLost if the time is over."""
    attempts = Attempts(address)
    while True:
        try:
            return act()
        except ConnectionLost as lost:
            attempts.failed(lost)
