"""Input of a client: methods with their content, and notes of other input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pamqp import commands
from pamqp.commands import Basic

from amqp_broker.conformance.transcript import show_content, show_fields, show_method
from amqp_broker.conformance.wire import Method


class Stopped(Exception):
    """The scenario cannot continue without an expected answer; recorded as its last line."""


class Unreachable(Stopped):
    """The broker accepts no connection."""


class Silent(Stopped):
    """The broker does not answer in time."""


@dataclass
class Received:
    """A method with its content; if `method` is None, a note of other input."""

    method: Method | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] | None = None
    body: bytes = b""
    body_size: int = 0
    frame_sizes: list[int] = field(default_factory=list)
    note: str = ""

    def __getitem__(self, name: str) -> Any:
        """Return a field of the method for use in the scenario."""
        if name not in self.fields:
            raise Stopped(f"no {name} in {show_method(self.method) if self.method else self.note}")
        return self.fields[name]

    @property
    def is_whole(self) -> bool:
        return self.properties is not None and len(self.body) >= self.body_size

    def lines(self) -> Iterator[str]:
        if self.method is None:
            yield self.note
            return
        yield show_method(self.method) + show_fields(self.fields)
        if self.properties is not None:
            yield "   " + show_content(self.properties, self.body)


HAVE_CONTENT = (Basic.Deliver, Basic.GetOk, Basic.Return)
CLOSES = (commands.Channel.Close, commands.Connection.Close)
END = Received(note="the broker closed the socket")
