"""The corpora are small, and no input fails. The mutations of the targets work, and the form of the corpora, too."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzzing import corpus, planted
from tests.fuzzing.target import NAMES, Failure, Target, attempt, load


@pytest.mark.parametrize("name", NAMES)
def test_no_input_of_a_corpus_fails(name: str) -> None:
    target = load(name)
    inputs = corpus.read(name)
    assert len(inputs) > 5
    for data in inputs:
        attempt(target, data)


@pytest.mark.parametrize("name", NAMES)
def test_a_corpus_is_small_and_has_no_input_twice(name: str) -> None:
    inputs = corpus.read(name)
    assert corpus.path_of(name).stat().st_size <= corpus.FILE_BYTES_MAX
    assert len(set(inputs)) == len(inputs)


def test_each_corpus_has_a_target_and_a_planted_fault() -> None:
    assert sorted(path.stem for path in corpus.FOLDER.iterdir()) == sorted(NAMES) == sorted(planted.FAULTS)


@pytest.mark.parametrize("name", [name for name in NAMES if load(name).mutate is not None])
def test_mutated_inputs_differ_and_never_fail(name: str) -> None:
    target, chance = load(name), Random(1)
    assert target.mutate is not None
    data, seen = b"", set[bytes]()
    for data in [*corpus.read(name)[:10], b"\0"]:
        for _ in range(3):
            data = target.mutate(chance, data) or data
            seen.add(data)
            attempt(target, data[: target.octets_max])
    assert len(seen) > 10


@pytest.mark.parametrize("data", [b"", b"text", b"\x00\xff\n\r\\n'\"", bytes(range(256))])
def test_an_input_is_a_line_that_is_read_as_it_was(data: bytes) -> None:
    line = corpus.escaped(data)
    assert len(line.splitlines()) <= 1
    assert corpus.unescaped(line) == data


def test_only_inputs_that_reach_more_are_kept() -> None:
    target = load("field_table")
    assert len(corpus.minimised(target, [b"\1ab" + bytes([octet]) for octet in range(50)])) == 1
    assert corpus.minimised(target, [b"\1ab\0"], bytes_max=3) == []


def test_an_error_of_the_code_under_test_is_a_failure() -> None:
    def check(data: bytes) -> None:
        raise IndexError("out of range")

    with pytest.raises(Failure, match="IndexError: out of range"):
        attempt(Target(check, list), b"")
