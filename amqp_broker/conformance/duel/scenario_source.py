"""The source of a scenario of the differential suite, written while a program is played."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from amqp_broker.conformance.duel.steps import At, Call, Http, Publish, Settle

_HEAD = """\
@scenario
def {name}(lab: Lab) -> None:
"""


class Source:
    """Lines of a function; a name of an object is a variable."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: set[str] = set()
        self._last_rest = ""

    def text(self, name: str) -> str:
        """Return the function."""
        names = [f'    {name} = lab.name("{name}")\n' for name in sorted(self._names)]
        return _HEAD.format(name=name) + "".join(names) + "".join(f"    {line}\n" for line in self.lines)

    def add(self, line: str) -> None:
        self.lines.append(line)

    def name(self, names: Iterable[str]) -> None:
        self._names.update(names)

    def connect(self, index: int) -> None:
        self.add(f"{'abcd'[index]} = lab.connect()")

    def channel(self, at: At) -> None:
        self.add(f"{at.label} = {'abcd'[at.connection]}.channel({at.channel + 1})")

    def call(self, step: Call, verb: str) -> None:
        self.add(f"{step.at.label}.{verb}({step.method.name}{_keywords(step.fields)})")

    def publish(self, step: Publish, body: bytes) -> None:
        shown = repr(body) if len(body) < 20 else f'b"{body[:4].decode()}".ljust({len(body)}, b".")'
        self.add(f"{step.at.label}.publish({shown}{_keywords(step.options)})")

    def settle(self, step: Settle, tag: int) -> None:
        self.add(f"{step.at.label}.{step.verb}({tag}{_keywords(step.options)})")

    def end(self, index: int, is_reset: bool) -> None:
        self.add(f"{'abcd'[index]}.{'abort' if is_reset else 'close'}()")

    def http(self, step: Http, body: Any) -> None:
        self.add(f"lab.http({step.method!r}, {step.path!r}{'' if body is None else f', {body!r}'})")

    def drain(self, queue: str) -> None:
        self.add(f"lab.channel().drain({queue})")

    def rest(self, queues: Iterable[str]) -> None:
        """Wait until these queues and all channels are at rest."""
        self.add(f"lab.rest({', '.join(queue for queue in queues if queue in self._names)})")


def _keywords(options: Any) -> str:
    return "".join(f", {name}={value!r}" for name, value in options.items())
