"""Publishes captured messages to any broker with their original timing, without a socket or a clock.

    replay = Replay(items, speed=2)
    due_us = replay.tick(now_us)  # publishes due messages; returns when the next is due, or None

An item is (µs since the start of the capture, message, mandatory). The first message is published at once, the others
at their original distance from it, divided by `speed`; math.inf publishes as fast as the other end confirms.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

from pamqp import commands

from amqp_broker.amqp.message import Address, Message
from amqp_broker.shovel.amqp_client import Client, Lost, Procedure, call, check

Item: TypeAlias = "tuple[int, Message, bool]"

# Limit of unconfirmed messages.
WINDOW: Final = 1000
SPEED_MIN: Final = 0.001
# Limit of returned messages that are reported one by one.
RETURNS_KEPT: Final = 3


class Replay:
    """One replay with its counts. `late_us_max` is the greatest delay of a message.

    `exchange`, if not None, replaces the exchange of each message. `exchanges` must exist before anything is published.
    `user` is the login: brokers refuse the user-id of another user, so it is removed and counted.
    """

    def __init__(
        self,
        items: Iterator[Item],
        speed: float = 1.0,
        *,
        exchange: str | None = None,
        exchanges: frozenset[str] = frozenset(),
        user: str = "guest",
        window: int = WINDOW,
    ) -> None:
        """Raise ValueError for an invalid speed."""
        if not speed >= SPEED_MIN:
            raise ValueError(f"the speed must be {SPEED_MIN:g} or more, not {speed:g}")
        self.speed = speed
        self.published = 0
        self.confirmed = 0
        self.nacked = 0
        self.returned = 0
        self.user_ids_left_out = 0
        self.late_us_max = 0
        # The first returned messages: address and reason.
        self.returns: list[tuple[Address, str]] = []
        self.is_ready = False
        self.is_blocked = False
        self._is_full = False
        self._exchange = exchange
        self._exchanges = frozenset({exchange}) if exchange is not None else exchanges
        self._user = user
        self._window = window
        self._items = items
        self._next = next(items, None)
        # Time of the first message, in the capture and by the clock.
        self._first_us = self._next[0] if self._next is not None else 0
        self._began_us: int | None = None
        # Unconfirmed publish numbers in ascending order.
        self._unconfirmed: deque[int] = deque()
        self._confirmed_early: set[int] = set()
        self._client: Client

    @property
    def is_done(self) -> bool:
        """Return whether all messages are published and confirmed."""
        return self.is_ready and self._next is None and not self._unconfirmed

    @property
    def unconfirmed(self) -> int:
        return len(self._unconfirmed) - len(self._confirmed_early)

    def tick(self, now_us: int) -> int | None:
        """Publish due messages and return when the next one is due; None if it must wait, or there is none."""
        if self._began_us is None:
            self._began_us = now_us
        while self._next is not None and self._may_publish():
            at_us, message, mandatory = self._next
            due_us = self._began_us + math.ceil((at_us - self._first_us) / self.speed)
            if due_us > now_us:
                return due_us
            self.late_us_max = max(self.late_us_max, 0 if self.speed == math.inf else now_us - due_us)
            self._publish(message, mandatory)
            self._next = next(self._items, None)
        return None

    def _may_publish(self) -> bool:
        return self.is_ready and not self.is_blocked and not self._is_full and self.unconfirmed < self._window

    def _publish(self, message: Message, mandatory: bool) -> None:
        properties = message.properties()
        if properties.user_id is not None and properties.user_id != self._user:
            properties.user_id = None
            self.user_ids_left_out += 1
            message = message.with_properties(properties)
        address = message.address
        if self._exchange is not None:
            address = Address(self._exchange, address.routing_key)
        self._unconfirmed.append(self._client.publish(address, message, mandatory))
        self.published += 1

    # amqp_client.Peer

    def set_up(self, client: Client) -> Procedure:
        self._client = client
        for name in sorted(self._exchanges - {""}):
            check((yield call(commands.Exchange.Declare, exchange=name, passive=True)))
        yield call(commands.Confirm.Select)

    def on_ready(self, client: Client) -> None:
        self.is_ready = True

    def on_settled(self, client: Client, tag: int, multiple: bool, is_taken: bool) -> None:
        unconfirmed, early = self._unconfirmed, self._confirmed_early
        count = 0
        if multiple:
            while unconfirmed and (unconfirmed[0] <= tag or tag == 0):
                number = unconfirmed.popleft()
                count += number not in early
                early.discard(number)
        elif unconfirmed and unconfirmed[0] <= tag <= unconfirmed[-1] and tag not in early:
            early.add(tag)
            count = 1
        while unconfirmed and unconfirmed[0] in early:
            early.discard(unconfirmed.popleft())
        if is_taken:
            self.confirmed += count
        else:
            self.nacked += count

    def on_returned(self, client: Client, address: Address, reason: str) -> None:
        self.returned += 1
        if len(self.returns) < RETURNS_KEPT:
            self.returns.append((address, reason))

    def on_blocked(self, client: Client, is_blocked: bool) -> None:
        self.is_blocked = is_blocked

    def on_full(self, client: Client, is_full: bool) -> None:
        """The socket is full, or writable again."""
        self._is_full = is_full

    def on_delivery(self, client: Client, tag: int, message: Message) -> None:
        raise Lost("the other end sent an unexpected delivery")

    def on_cancel(self, client: Client) -> None:
        raise Lost("the other end cancelled a consumer that does not exist")
