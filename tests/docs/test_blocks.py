from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import Block, Step, blocks_of, fits, steps_of


def block(text: str, language: str = "console") -> Block:
    return Block("page.md", 1, language, text, "", "")


def test_blocks_are_found_with_their_comments(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n\n```sh\nls\n```\n<!-- not run: needs Docker -->\n```sh\ndocker\n```\n"
        "text\n\n<!-- file: a.json -->\n\n```json\n{}\n```\n",
        "utf-8",
    )
    assert list(blocks_of(page)) == [
        Block("page.md", 3, "sh", "ls\n", "", ""),
        Block("page.md", 7, "sh", "docker\n", "needs Docker", ""),
        Block("page.md", 14, "json", "{}\n", "", "a.json"),
    ]


def test_an_unclosed_block_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# A\n\n```sh\nls\n", "utf-8")
    with pytest.raises(AssertionError, match="does not end"):
        list(blocks_of(tmp_path / "page.md"))


def test_commands_have_the_output_that_follows() -> None:
    assert steps_of(block("$ a\n1\n2\n$ b \\\n> c\n3\n$ d\n")) == [
        Step("a", "1\n2\n"),
        Step("b \\\nc", "3\n"),
        Step("d", ""),
    ]
    assert steps_of(block("a '{\n  b\n  c}'\n\nd\n", "sh")) == [Step("a '{\nb\nc}'", None), Step("d", None)]


def test_output_without_a_command_is_refused() -> None:
    with pytest.raises(AssertionError, match="without a command"):
        steps_of(block("1\n$ a\n"))


@pytest.mark.parametrize(
    ("printed", "shown", "does"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("\x1b[1ma\x1b[0m  \n\nb\n", "a\nb\n", True),
        ("a\nb\nc\n", "a\nb\n", False),
        ("a\n", "a\nb\n", False),
        ("12:01 ready\n", "… ready\n", True),
        ("12:01\nready\n", "… ready\n", False),
        ("a\nb\nc\nd\n", "a\n…\nd\n", True),
        ("a\nd\n", "a\n…\nd\n", True),
        ("a.c\n", "abc\n", False),
        ("abc\n", "a.c\n", False),
    ],
)
def test_output_matches_with_placeholders(printed: str, shown: str, does: bool) -> None:
    assert fits(printed, shown) is does
