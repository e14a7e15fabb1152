"""Exchanges and bindings of the model, and where a message goes by their definition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.queues import QueueModel


@dataclass(frozen=True)
class BindingModel:
    source: str
    key: str
    destination: QueueModel | str

    def matches(self, kind: str, key: str) -> bool:
        match kind:
            case "fanout":
                return True
            case "direct":
                return self.key == key
            case "topic":
                return is_match(self.key.split(".") if self.key else [], key.split(".") if key else [])
        raise AssertionError(kind)


def is_match(pattern: list[str], words: list[str]) -> bool:
    """The definition of topic patterns, word by word."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return is_match(pattern[1:], words) or (bool(words) and is_match(pattern, words[1:]))
    return bool(words) and pattern[0] in ("*", words[0]) and is_match(pattern[1:], words[1:])


@dataclass
class ExchangeModel:
    """`alternate` is what its argument says, `policy_alternate` what a policy does, which counts only without that."""

    kind: str
    is_auto_delete: bool = False
    is_durable: bool = True
    alternate: str | None = None
    policy_alternate: str | None = None


class Topology:
    """Exchanges, bindings and queues, each in the order in which they came."""

    def __init__(self) -> None:
        self.exchanges = {f"amq.{kind}": ExchangeModel(kind) for kind in ("direct", "fanout", "topic")}
        self.queues: dict[str, QueueModel] = {}
        self.bindings: dict[BindingModel, None] = {}
        # Publishes by name of the exchange.
        self.published: dict[str, Counter[str]] = {}

    def route(self, exchange: str, keys: list[str]) -> dict[QueueModel, None]:
        """The queues that a message goes to, each once; with CC and BCC it has several keys."""
        if exchange == "":
            return {self.queues[key]: None for key in keys if key in self.queues}
        found: dict[QueueModel, None] = {}
        seen: set[str] = set()
        pending = [exchange]
        while pending:
            name = pending.pop()
            if name in seen or name not in self.exchanges:
                continue
            seen.add(name)
            here = self.exchanges[name]
            matching = [
                binding for binding in self.bindings_from(name) if any(binding.matches(here.kind, key) for key in keys)
            ]
            for binding in matching:
                if isinstance(binding.destination, str):
                    pending.append(binding.destination)
                else:
                    found[binding.destination] = None
            alternate = here.alternate or here.policy_alternate
            if not matching and alternate:
                pending.append(alternate)
        return found

    def unbind(self, binding: BindingModel) -> None:
        """Remove a binding; an auto-delete exchange goes with its last one."""
        self.bindings.pop(binding, None)
        source = binding.source
        if source in self.exchanges and self.exchanges[source].is_auto_delete and not self.bindings_from(source):
            self.delete_exchange(source)

    def bindings_from(self, exchange: str) -> list[BindingModel]:
        return [binding for binding in self.bindings if binding.source == exchange]

    def delete_exchange(self, name: str) -> None:
        if self.exchanges.pop(name, None) is None:
            return
        self.published.pop(name, None)
        for queue in self.queues.values():
            queue.sources.pop(name, None)
        for binding in self.bindings_from(name):
            del self.bindings[binding]
        self._unbind_destination(name)

    def delete_queue(self, queue: QueueModel) -> None:
        del self.queues[queue.name]
        self._unbind_destination(queue)

    def _unbind_destination(self, destination: QueueModel | str) -> None:
        for binding in [binding for binding in self.bindings if binding.destination == destination]:
            self.unbind(binding)
