"""The trie against trying every pattern."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from amqp_broker.broker.exchanges.topic import TopicTrie, words
from amqp_broker.broker.exchanges.topic_bits import TopicBits
from tests.properties.generators import examples

WORDS = st.sampled_from(["a", "b", "", "*", "#"])
KEYS = st.lists(WORDS, max_size=6).map(".".join)


def matches(pattern: list[str], key: list[str]) -> bool:
    """Return whether a key matches a pattern, word by word."""
    if not pattern:
        return not key
    if pattern[0] == "#":
        return matches(pattern[1:], key) or (bool(key) and matches(pattern, key[1:]))
    return bool(key) and pattern[0] in ("*", key[0]) and matches(pattern[1:], key[1:])


@settings(max_examples=examples(5))
@given(st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=10), st.lists(KEYS, min_size=1, max_size=10))
def test_the_trie_finds_what_trying_every_pattern_finds(bound: list[tuple[str, int]], keys: list[str]) -> None:
    trie: TopicTrie[int] = TopicTrie()
    for pattern, value in bound:
        trie.add(pattern, value)
    for key in keys:
        assert trie.match(key) == {value for pattern, value in bound if matches(words(pattern), words(key))}


@settings(max_examples=examples(5))
@given(st.lists(KEYS, max_size=10), st.lists(KEYS, min_size=1, max_size=10))
def test_bits_find_what_trying_every_pattern_finds(patterns: list[str], keys: list[str]) -> None:
    bits = TopicBits([(words(pattern), [pattern]) for pattern in patterns])
    for key in keys:
        assert bits.match(words(key)) == {pattern for pattern in patterns if matches(words(pattern), words(key))}


@settings(max_examples=examples(2))
@given(st.lists(st.lists(st.sampled_from("a*#"), min_size=20, max_size=40), min_size=30, max_size=40), st.data())
def test_long_patterns_match_in_the_trie_as_in_bits(patterns: list[list[str]], data: st.DataObject) -> None:
    trie: TopicTrie[int] = TopicTrie()
    for number, pattern in enumerate(patterns):
        trie.add(".".join(pattern), number)
    key = data.draw(st.lists(st.sampled_from("ab"), min_size=60, max_size=60))
    assert trie.match(".".join(key)) == TopicBits([(p, [n]) for n, p in enumerate(patterns)]).match(key)


@settings(max_examples=examples(3))
@given(st.data())
def test_removing_leaves_exactly_the_rest(data: st.DataObject) -> None:
    trie: TopicTrie[int] = TopicTrie()
    bound: list[tuple[str, int]] = []
    for _ in range(data.draw(st.integers(1, 20))):
        is_removal: bool = data.draw(st.booleans())
        if bound and is_removal:
            trie.remove(*bound.pop(data.draw(st.integers(0, len(bound) - 1))))
        else:
            pattern, value = data.draw(KEYS), data.draw(st.integers(0, 2))
            trie.add(pattern, value)
            bound.append((pattern, value))
        key = data.draw(KEYS)
        assert trie.match(key) == {value for pattern, value in bound if matches(words(pattern), words(key))}
    for pattern, value in bound:
        trie.remove(pattern, value)
    assert not trie._root.children
    assert not trie._root.values
