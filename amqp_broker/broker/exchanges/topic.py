"""Topic exchanges: matching routing keys against patterns.

    pattern    matches              does not match
    a.b        a.b                  a, a.b.c, A.b
    a.*        a.b, a.              a, a.b.c           * is exactly one word, which may be empty
    a.#        a, a.b, a.b.c        b.a                # is any number of words, none included
    #          everything, also ""
    *          a                    "", a.b            the empty routing key has no words at all

The patterns are in a trie with one level per word. Matching follows all nodes that the words so far can lead to, so its
cost depends on the number of words and of matching patterns, not on the number of bindings. Where these nodes are many,
as with patterns of many `*` and `#`, matching begins anew with all patterns as bits (`topic_bits.py`).
Source: AMQP 0-9-1 specification, 3.1.3.3 "The Topic Exchange Type"; RabbitMQ, rabbit_exchange_type_topic.erl.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final, Generic, TypeVar

from amqp_broker.amqp import fields
from amqp_broker.broker.exchanges.exchange import Binding, Destination, Exchange
from amqp_broker.broker.exchanges.topic_bits import TopicBits

T = TypeVar("T")

# Nodes that a match in the trie may visit, besides one for each binding.
VISITED_MAX: Final = 2048
# Nodes at one word of a key that are not counted.
FEW: Final = 8


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
        self._count = 0
        # The work of the last match: nodes that it visited where they were many, or sixteen places of patterns as bits.
        self.match_work = 0
        # The patterns as bits, if a key needed them since the last change.
        self._bits: TopicBits[T] | None = None

    def add(self, pattern: str, value: T) -> None:
        self._bits = None
        self._count += 1
        node = self._root
        for word in words(pattern):
            child = node.children.get(word)
            if child is None:
                child = node.children[word] = _Node(word == "#")
            node = child
        node.values[value] = node.values.get(value, 0) + 1

    def remove(self, pattern: str, value: T) -> None:
        """Undo one `add`, and remove nodes that are no longer needed."""
        self._bits = None
        self._count -= 1
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
        key, visited = words(routing_key), 0
        for word in key:
            if len(nodes) > FEW:
                visited += len(nodes)
                if visited > VISITED_MAX + self._count:
                    return self._match_bits(key)
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
        self.match_work = visited
        found: set[T] = set()
        for node in nodes:
            found.update(node.values)
        return found

    def _match_bits(self, key: list[str]) -> set[T]:
        bits = self._bits
        self.match_work = VISITED_MAX + self._count
        if bits is None:
            bits = self._bits = TopicBits(_patterns(self._root))
            self.match_work += bits.size
        self.match_work += bits.size // 16
        return bits.match(key)


def _patterns(root: _Node[T]) -> Iterator[tuple[list[str], dict[T, int]]]:
    """Yield all patterns below a node, as lists of words, with their values."""
    path: list[str] = []
    pending = [(0, "", root)]
    while pending:
        depth, last, node = pending.pop()
        if depth:
            path[depth - 1 :] = [last]
        if node.values:
            yield path, node.values
        pending += [(depth + 1, word, child) for word, child in node.children.items()]


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
        trie = self._trie
        found = trie.match(routing_key)
        if trie.match_work:
            self.match_work += trie.match_work
        return found

    def _index(self, binding: Binding) -> None:
        self._trie.add(binding.routing_key, binding.destination)

    def _unindex(self, binding: Binding) -> None:
        self._trie.remove(binding.routing_key, binding.destination)
