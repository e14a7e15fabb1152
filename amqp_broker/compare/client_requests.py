"""Requests of a client on a channel, and the answers of the two brokers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pamqp import base

from amqp_broker.compare import method_facts
from amqp_broker.compare.deliveries import Copies
from amqp_broker.compare.method_reader import Received

UPSTREAM: Final = 0
LOCAL: Final = 1


@dataclass(slots=True)
class ClientRequest:
    """A request of the client; `queue` is the queue of a consumer or a get."""

    method: Any
    at_ms: int
    queue: str = ""
    search: Search | None = None

    @property
    def text(self) -> str:
        return method_facts.show(Received(0, self.method))


class Consumer(NamedTuple):
    queue: str
    no_ack: bool
    asked: str


@dataclass(slots=True)
class Search:
    """A search in a local queue for the message that the upstream returned; `others` are requeued at the end."""

    copies: Copies
    asked: ClientRequest
    others: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """A method that a broker sent, and the request that it answers, if any."""

    said: Received
    asked: ClientRequest | None
    at_ms: int


class Side:
    """Open requests, consumers and unconfirmed publishes at one of the brokers."""

    def __init__(self) -> None:
        self.asked: deque[ClientRequest] = deque()
        self.consumers: dict[str, Consumer] = {}
        self.unconfirmed: dict[int, None] = {}


def copy_of(method: Any) -> Any:
    """Return a copy of a method, so that a later translation leaves the client's own words intact."""
    kind: type[base.Frame] = type(method)
    copied = kind.__new__(kind)
    for name in kind.attributes():
        setattr(copied, name, getattr(method, name))
    return copied
