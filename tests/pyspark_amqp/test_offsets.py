from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_amqp.offsets import Range, capped, split


def test_without_a_limit_a_batch_ends_at_the_tails() -> None:
    assert capped({"a": 1, "b": 5}, {"a": 9, "b": 5}, None) == {"a": 9, "b": 5}


def test_queues_share_a_limit_and_pass_on_unused_parts() -> None:
    assert capped({"a": 0, "b": 0}, {"a": 100, "b": 100}, 10) == {"a": 5, "b": 5}
    assert capped({"a": 0, "b": 0}, {"a": 100, "b": 2}, 10) == {"a": 8, "b": 2}


def test_a_batch_never_goes_back() -> None:
    assert capped({"a": 7}, {"a": 3}, None) == {"a": 7}


def test_names_are_sorted_so_that_equal_offsets_are_equal_json() -> None:
    assert list(capped({"b": 0, "a": 0}, {"b": 1, "a": 9}, None)) == ["a", "b"]


def test_a_range_is_split_into_equal_parts() -> None:
    assert split({"a": 10}, {"a": 20}, 2, None) == [Range("a", 10, 15), Range("a", 15, 20)]
    assert split({"a": 0}, {"a": 7}, 1, 3) == [Range("a", 0, 2), Range("a", 2, 4), Range("a", 4, 7)]


def test_an_empty_or_negative_range_has_no_parts() -> None:
    assert split({"a": 3}, {"a": 3}, 4, None) == []
    assert split({"a": 9}, {"a": 3}, 4, None) == []


@given(
    st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(0, 50), st.integers(0, 60)), min_size=1),
    st.integers(1, 9),
    st.none() | st.integers(1, 9),
)
def test_parts_cover_each_offset_once(ends: dict[str, tuple[int, int]], parts: int, most: int | None) -> None:
    start = {queue: first for queue, (first, _) in ends.items()}
    end = {queue: first + count for queue, (first, count) in ends.items()}
    ranges = split(start, end, parts, most)
    for queue in ends:
        covered = [offset for wanted in ranges if wanted.queue == queue for offset in range(wanted.start, wanted.end)]
        assert covered == list(range(start[queue], end[queue]))
    total = sum(end.values()) - sum(start.values())
    assert len(ranges) >= min(parts, total)
    assert all(0 < wanted.end - wanted.start <= (most or total) for wanted in ranges)


@given(
    st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(0, 50), st.integers(0, 60)), min_size=1),
    st.integers(1, 99),
)
def test_a_batch_uses_its_whole_limit(ends: dict[str, tuple[int, int]], most: int) -> None:
    start = {queue: first for queue, (first, _) in ends.items()}
    tails = {queue: first + count for queue, (first, count) in ends.items()}
    taken = capped(start, tails, most)
    assert all(start[queue] <= taken[queue] <= tails[queue] for queue in ends)
    assert sum(taken.values()) - sum(start.values()) == min(most, sum(tails.values()) - sum(start.values()))
