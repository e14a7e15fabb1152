from __future__ import annotations

import random

import pytest

from amqp_broker.broker.exchanges.topic import TopicExchange, TopicTrie, words
from amqp_broker.broker.queues.queue import Queue
from tests.broker.exchanges.bindings import bound, names


def trie_of(*patterns: str) -> TopicTrie[str]:
    trie: TopicTrie[str] = TopicTrie()
    for pattern in patterns:
        trie.add(pattern, pattern)
    return trie


# The table of the module's docstring, and further behavior that users of RabbitMQ rely on.
@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("a.b", ["a.b"], ["", "a", "a.b.c", "A.b", "b.a", "a.b."]),
        ("a.*", ["a.b", "a.", "a.*", "a.#"], ["", "a", "a.b.c", "b.a"]),
        ("*.a", ["b.a", ".a"], ["a", "b.c.a"]),
        ("*", ["a", "*", "#"], ["", "a.b", "."]),
        ("*.*", ["a.b", "."], ["a", "a.b.c", ""]),
        ("a.#", ["a", "a.b", "a.b.c", "a."], ["", "b.a", "ab"]),
        ("#.a", ["a", "b.a", "c.b.a", "a.a"], ["", "a.b"]),
        ("#", ["", "a", "a.b", "a.b.c", "."], []),
        ("a.#.b", ["a.b", "a.x.b", "a.x.y.b", "a.b.b"], ["a", "b", "a.b.c", ""]),
        ("#.a.#", ["a", "x.a", "a.x", "x.a.x"], ["", "x", "x.y"]),
        ("#.#", ["", "a", "a.b"], []),
        ("#.*", ["a", "a.b", "a.b.c"], [""]),
        ("*.#", ["a", "a.b", "a.b.c"], [""]),
        ("*.#.*", ["a.b", "a.b.c"], ["", "a"]),
        ("", [""], ["a", "."]),
        ("a..b", ["a..b"], ["a.b", "a.x.b"]),
        ("ab*", ["ab*"], ["abc", "ab"]),
        ("#a", ["#a"], ["a", "xa"]),
    ],
)
def test_topic_patterns_match_as_in_rabbitmq(pattern: str, matching: list[str], others: list[str]) -> None:
    trie = trie_of(pattern)
    assert [key for key in matching if not trie.match(key)] == []
    assert [key for key in others if trie.match(key)] == []


def test_a_key_finds_the_values_of_all_patterns_that_match() -> None:
    trie = trie_of("stock.#", "stock.usd.*", "#.nyse", "*.eur.*", "#")
    assert trie.match("stock.usd.nyse") == {"stock.#", "stock.usd.*", "#.nyse", "#"}


def test_a_value_under_several_patterns_is_found_once() -> None:
    trie: TopicTrie[str] = TopicTrie()
    for pattern in ("#", "a.#", "a.*"):
        trie.add(pattern, "value")
    assert trie.match("a.b") == {"value"}


def test_several_values_may_have_one_pattern() -> None:
    trie: TopicTrie[int] = TopicTrie()
    trie.add("a.*", 1)
    trie.add("a.*", 2)
    assert trie.match("a.b") == {1, 2}


def test_a_value_added_twice_is_gone_after_the_second_removal() -> None:
    trie = trie_of("a.#", "a.#")
    trie.remove("a.#", "a.#")
    assert trie.match("a.b") == {"a.#"}
    trie.remove("a.#", "a.#")
    assert trie.match("a.b") == set()


def test_removing_a_pattern_leaves_those_that_share_its_words() -> None:
    trie = trie_of("a.b", "a.b.c", "a.*", "a")
    trie.remove("a.b", "a.b")
    assert trie.match("a.b") == {"a.*"}
    assert trie.match("a.b.c") == {"a.b.c"}
    assert trie.match("a") == {"a"}


def test_removal_drops_nodes_that_are_no_longer_needed() -> None:
    trie = trie_of("a.b.c.d", "a.b", "#.x.*", "")
    for pattern in ("a.b.c.d", "#.x.*", "", "a.b"):
        trie.remove(pattern, pattern)
    assert not trie._root.children
    assert not trie._root.values


def test_matching_keeps_nothing() -> None:
    trie = trie_of("a.#")
    trie.match("b.c.d")
    assert list(trie._root.children) == ["a"]


def test_a_pattern_of_many_hashes_is_matched_quickly() -> None:
    pattern = ".".join(["#", "a"] * 50)
    trie = trie_of(pattern)
    assert trie.match(".".join(["a"] * 200)) == {pattern}
    assert trie.match(".".join(["a"] * 49)) == set()


@pytest.mark.parametrize("patterns", [3, 100])
def test_a_key_after_another_of_the_same_message_finds_the_same(patterns: int) -> None:
    choices = random.Random(patterns)
    trie = trie_of(*{".".join(choices.choices("*#*#ab", k=choices.randint(1, 60))) for _ in range(patterns)})
    keys = [".".join(choices.choices("abc", k=choices.randint(0, 90))) for _ in range(60)]
    alone = [trie.match(key) for key in keys]
    assert [trie.match(key, is_next=True) for key in keys] == alone
    # An exchange may have got another pattern meanwhile.
    trie.add("#.c", "new")
    assert "new" in trie.match("a.c", is_next=True)


def test_an_empty_key_has_no_words_and_a_dot_separates_two() -> None:
    assert words("") == []
    assert words("a.b") == ["a", "b"]
    assert words(".") == ["", ""]


def test_a_topic_exchange_routes_to_each_matching_destination_once(queues: list[Queue]) -> None:
    exchange = TopicExchange("/", "x")
    bound(exchange, queues[0], "a.*")
    bound(exchange, queues[0], "a.#")
    bound(exchange, queues[1], "*.b")
    bound(exchange, queues[2], "b")
    assert names(exchange, "a.b") == ["q0", "q1"]
    assert names(exchange, "b") == ["q2"]
