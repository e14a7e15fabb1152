from __future__ import annotations

import pytest

from amqp_broker.broker.exchanges.topic import VISITED_MAX, TopicTrie, words
from amqp_broker.broker.exchanges.topic_bits import TopicBits


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("a.b", ["a.b"], ["", "a", "a.b.c", "b.a"]),
        ("a.*", ["a.b", "a.", "a.*", "a.#"], ["", "a", "a.b.c", "b.a"]),
        ("a.#.b", ["a.b", "a.x.b", "a.x.y.b", "a.b.b"], ["a", "b", "a.b.c", ""]),
        ("#.#", ["", "a", "a.b"], []),
        ("#.*.#", ["a", "a.b", "a.b.c"], [""]),
        ("", [""], ["a", "."]),
        ("#", ["", "a", "*", "#.a"], []),
    ],
)
def test_a_pattern_as_bits_matches_as_in_the_trie(pattern: str, matching: list[str], others: list[str]) -> None:
    # Its neighbours end and begin beside it.
    bits = TopicBits([(["x"], ["before"]), (words(pattern), ["it"]), (["#", "y"], ["behind"])])
    assert [key for key in matching if "it" not in bits.match(words(key))] == []
    assert [key for key in others if "it" in bits.match(words(key))] == []


def test_many_patterns_that_match_halfway_are_matched_as_bits_after_each_change() -> None:
    trie: TopicTrie[int] = TopicTrie()
    for number in range(60):
        trie.add(".".join("*#"[number >> (at % 6) & 1] for at in range(60)), number)
    key = ".".join("a" * 60)
    assert VISITED_MAX < 60 * 60
    assert trie.match(key) == set(range(60))
    assert trie._bits is not None
    trie.add("a.#", 60)
    assert trie.match(key) == set(range(61))
    trie.remove("a.#", 60)
    assert trie.match(key) == set(range(60))


def test_few_patterns_stay_in_the_trie() -> None:
    trie: TopicTrie[int] = TopicTrie()
    for number in range(100):
        trie.add(f"*.{number}.#", number)
    assert trie.match("a.7.b.c") == {7}
    assert trie._bits is None
