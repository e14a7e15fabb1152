"""What a client asked on a channel, and what the brokers have answered."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pamqp import base

from amqp_broker.compare import words
from amqp_broker.compare.deliveries import Copies
from amqp_broker.compare.speech import Said

UPSTREAM: Final = 0
OURS: Final = 1


@dataclass(slots=True)
class Asked:
    """What a client has asked; `queue` is where a consumer or a get takes from."""

    method: Any
    at_ms: int
    queue: str = ""
    search: Search | None = None

    @property
    def text(self) -> str:
        return words.show(Said(0, self.method))


class Consumer(NamedTuple):
    queue: str
    no_ack: bool
    asked: str


@dataclass(slots=True)
class Search:
    """Looking for a message of ours that the upstream has given: what was found instead is put back at the end."""

    copies: Copies
    asked: Asked
    others: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """What a broker has said, and to what question of the client's, if any."""

    said: Said
    asked: Asked | None
    at_ms: int


class Side:
    """What one of the brokers was asked, and who consumes there."""

    def __init__(self) -> None:
        self.asked: deque[Asked] = deque()
        self.consumers: dict[str, Consumer] = {}
        self.unconfirmed: dict[int, None] = {}


def copy_of(method: Any) -> Any:
    """A method as the client said it, whatever is translated in it later."""
    kind: type[base.Frame] = type(method)
    copied = kind.__new__(kind)
    for name in kind.attributes():
        setattr(copied, name, getattr(method, name))
    return copied
