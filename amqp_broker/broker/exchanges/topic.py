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

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

from amqp_broker.amqp import fields
from amqp_broker.broker.exchanges.exchange import Binding, Destination, Exchange
from amqp_broker.broker.exchanges.topic_bits import TopicBits

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message

T = TypeVar("T")

# Nodes that a match in the trie may visit, besides one for each binding.
VISITED_MAX: Final = 2048
# Nodes at one word of a key that are not counted.
FEW: Final = 8
# Places of patterns as bits for which one node may be visited before; that takes a tenth of their time.
PLACES_OF_VISIT: Final = 256
# Words of a key that count as a piece of work, where a message has several keys.
WORDS_OF_WORK: Final = 16


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
        # Set if the last key needed them.
        self._needed_bits = False

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

    def match(self, routing_key: str, *, is_next: bool = False) -> set[T]:
        """Return the values of all patterns that match.

        A key of the same message as the one before it (`is_next`) is probably like that one: if that one needed the
        bits, only a few nodes are visited before them.
        """
        nodes = _with_hashes([self._root])
        key, visited, visited_max = words(routing_key), 0, VISITED_MAX + self._count
        bits, self._needed_bits = (self._bits if is_next and self._needed_bits else None), False
        if bits is not None:
            visited_max = len(key) + bits.size // PLACES_OF_VISIT
        for word in key:
            if len(nodes) > FEW:
                visited += len(nodes)
                if visited > visited_max:
                    return self._match_bits(key, visited)
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

    def _match_bits(self, key: list[str], visited: int) -> set[T]:
        bits, self._needed_bits = self._bits, True
        self.match_work = visited
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

    def destinations(
        self, routing_keys: Sequence[str], headers: fields.Table, message: Message | None
    ) -> Collection[Destination]:
        if len(routing_keys) == 1:
            return self.match(routing_keys[0], headers)
        return self.match_each(routing_keys)

    def match_each(self, routing_keys: Iterable[str], *, is_next: bool = False) -> set[Destination]:
        """Return the destinations of several keys; `is_next` is set if others of the message were matched before."""
        trie, found = self._trie, set[Destination]()
        for key in routing_keys:
            found |= trie.match(key, is_next=is_next)
            is_next = True
            self.match_work += trie.match_work + 1 + key.count(".") // WORDS_OF_WORK
        return found

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
