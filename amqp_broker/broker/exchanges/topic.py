"""Topic exchanges: matching routing keys against patterns.

    pattern    matches              does not match
    a.b        a.b                  a, a.b.c, A.b
    a.*        a.b, a.              a, a.b.c           * is exactly one word, which may be empty
    a.#        a, a.b, a.b.c        b.a                # is any number of words, none included
    #          everything, also ""
    *          a                    "", a.b            the empty routing key has no words at all

The patterns are in a trie with one level per word. Matching follows all nodes that the words so far can lead to, so its
cost depends on the number of words and of matching patterns, not on the number of bindings.
Source: AMQP 0-9-1 specification, 3.1.3.3 "The Topic Exchange Type"; RabbitMQ, rabbit_exchange_type_topic.erl.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from amqp_broker.amqp import fields
from amqp_broker.broker.exchanges.exchange import Binding, Destination, Exchange

T = TypeVar("T")


class _Node(Generic[T]):
    """The node at the end of some words of a pattern. After `#`, any word also stays at the same node."""

    __slots__ = ("children", "is_hash", "values")

    def __init__(self, is_hash: bool) -> None:
        self.children: dict[str, _Node[T]] = {}
        self.values: dict[T, int] = {}
        self.is_hash = is_hash


class TopicTrie(Generic[T]):
    """Patterns with values; a value added twice under one pattern is gone after the second removal."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node(False)

    def add(self, pattern: str, value: T) -> None:
        node = self._root
        for word in words(pattern):
            child = node.children.get(word)
            if child is None:
                child = node.children[word] = _Node(word == "#")
            node = child
        node.values[value] = node.values.get(value, 0) + 1

    def remove(self, pattern: str, value: T) -> None:
        """Undo one `add`, and remove nodes that are no longer needed."""
        path = [self._root]
        for word in words(pattern):
            path.append(path[-1].children[word])
        values = path[-1].values
        values[value] -= 1
        if not values[value]:
            del values[value]
        for word in reversed(words(pattern)):
            node = path.pop()
            if node.values or node.children:
                break
            del path[-1].children[word]

    def match(self, routing_key: str) -> set[T]:
        """Return the values of all patterns that match."""
        nodes = _with_hashes([self._root])
        for word in words(routing_key):
            reached: list[_Node[T]] = []
            # In a key, the words * and # have no special meaning.
            is_plain = word not in ("*", "#")
            for node in nodes:
                if node.is_hash:
                    reached.append(node)
                children = node.children
                if children:
                    if is_plain and (child := children.get(word)) is not None:
                        reached.append(child)
                    if (child := children.get("*")) is not None:
                        reached.append(child)
            nodes = _with_hashes(reached)
        found: set[T] = set()
        for node in nodes:
            found.update(node.values)
        return found


def _with_hashes(nodes: list[_Node[T]]) -> list[_Node[T]]:
    """Return the nodes and those reached from them by `#` matching no word, each once."""
    for node in nodes:
        if "#" in node.children:
            break
    else:
        return nodes
    unique = dict.fromkeys(nodes)
    pending = list(unique)
    while pending:
        child = pending.pop().children.get("#")
        if child is not None and child not in unique:
            unique[child] = None
            pending.append(child)
    return list(unique)


def words(key: str) -> list[str]:
    return key.split(".") if key else []


@dataclass(eq=False)
class TopicExchange(Exchange):
    type: ClassVar[str] = "topic"

    _trie: TopicTrie[Destination] = field(default_factory=TopicTrie)

    def match(self, routing_key: str, headers: fields.Table) -> Collection[Destination]:
        return self._trie.match(routing_key)

    def _index(self, binding: Binding) -> None:
        self._trie.add(binding.routing_key, binding.destination)

    def _unindex(self, binding: Binding) -> None:
        self._trie.remove(binding.routing_key, binding.destination)
