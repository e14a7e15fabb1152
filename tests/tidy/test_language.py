"""The prose of docstrings, comments and Markdown is plain English, as far as a machine can check it.

`python -m tests.tidy.language FOLDER` lists the sentences to rewrite.
"""

from __future__ import annotations

import pytest

from tests.tidy.language import (
    SENTENCE_WORDS_MAX,
    SUBJECT_LENGTH_MAX,
    Text,
    findings,
    found,
    sentences,
    texts,
)


def rules(text: str, *, is_docstring: bool = False) -> list[str]:
    return [finding.rule for finding in findings(Text(1, text, is_docstring))]


def in_file(path: str, source: str) -> list[str]:
    return [text.text for text in texts(path, source)]


def test_no_sentence_is_left_to_rewrite() -> None:
    lines = [
        f"{path}:{finding.line}: {finding.rule}: {finding.sentence}"
        for files in found().values()
        for path, in_file in files.items()
        for finding in in_file
    ]
    assert lines == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("What a queue may hold.", "opens with What"),
        ("A queue. Whether it is durable.", "opens with Whether"),
        ("The owner: Who has it.", "opens with Who"),
        ("Such queues are deleted.", "opens with Such"),
        ("The queue that nobody reads.", "nobody"),
        ("The rest of it is dropped.", "of it"),
        ("The user and his password.", "he"),
        ("The session is told.", "told"),
        ("A queue of ours.", "ours"),
    ],
)
def test_a_riddle_is_found(text: str, rule: str) -> None:
    assert rules(text) == [rule]


@pytest.mark.parametrize(
    "text",
    [
        "What is a quorum queue?",
        "What's new in RabbitMQ 4.2",
        "Copies of its messages, and of it's kind.",
        "Two queues are told apart by name.",
        "Return `whoever` reads `nobody`.",
        'The reason is "told nobody".',
        "The thesis is here; there is hers.",
    ],
)
def test_plain_english_is_passed_over(text: str) -> None:
    assert rules(text) == []


def test_only_the_subject_of_a_docstring_is_short() -> None:
    subject = f"{'longer ' * (SUBJECT_LENGTH_MAX // 7)}than it."
    assert rules(subject, is_docstring=True) == ["long subject"]
    assert rules(subject) == []
    assert rules(f"Short. {subject.capitalize()}", is_docstring=True) == []


def test_a_sentence_has_an_end() -> None:
    assert rules("word " * SENTENCE_WORDS_MAX) == []
    assert rules("word " * (SENTENCE_WORDS_MAX + 1)) == ["long sentence"]
    assert rules("word, " * (SENTENCE_WORDS_MAX + 1)) == [], "a list"


def test_sentences_end_before_a_capital_letter() -> None:
    assert sentences("One, e.g. RabbitMQ. Two: three; Four `a. B` five.") == [
        "One, e.g. RabbitMQ.",
        "Two: three;",
        "Four X five.",
    ]


def test_prose_of_a_module_is_its_docstrings_and_comments() -> None:
    source = '''"""Module.

    Second
    paragraph.
"""

# A comment
# of two lines.
x = "What # is" # At the end.
def f():
    """Function."""
'''
    assert in_file("x.py", source) == [
        "Module.",
        "Second paragraph.",
        "Function.",
        "A comment of two lines.",
        "At the end.",
    ]


def test_a_test_name_is_a_sentence() -> None:
    assert in_file("x.py", "class TestA:\n    async def test_an_ack_is_late(): pass\ndef f(): pass\n") == [
        "an ack is late"
    ]


def test_prose_of_a_page_is_all_but_its_code() -> None:
    source = (
        "# Title\n\nFirst\nparagraph.\n- item\n  goes on\n\n```sh\nwhat\n```\n\n| a | b |\n|---|---|\n| c | `d` |\n"
    )
    assert in_file("x.md", source) == ["Title", "First paragraph.", "item goes on", "a", "b", "c", "X"]


@pytest.mark.parametrize(
    ("path", "source"),
    [("x.js", "// One\n// two.\nlet x = 1; // Three.\n"), ("Makefile", "# One\n# two.\nx = 1 # Three.\n")],
)
def test_prose_of_other_files_is_their_comments(path: str, source: str) -> None:
    assert in_file(path, source) == ["One two.", "Three."]


def test_a_comment_may_be_a_block() -> None:
    assert in_file("x.c", "/* One\n * two. */\nint x; /* Three. */\n") == ["One two.", "Three."]
    assert in_file("x.js", "/**\n * One.\n */\nlet x = 1;\n") == ["One."]
