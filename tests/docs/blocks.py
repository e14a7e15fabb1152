"""The fenced blocks of a page, with the comments before them.

<!-- not run: needs Docker -->     not run; tests/docs/test_pages.py lists all of these
<!-- file: rabbitmq.conf -->       written to this file, for the following blocks
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[2]
# Pages whose recipes are test modules; tests of their own run them.
APART = (
    *("testing.md", "testing-frameworks.md", "testing-languages.md"),
    *("cookbook.md", "cookbook-faults.md", "cookbook-time.md"),
)
PAGES = (
    PROJECT / "README.md",
    *(page for page in sorted((PROJECT / "docs").glob("*.md")) if page.name not in APART),
)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- (not run|file): (.+?) -->\n+\Z")


class Block(NamedTuple):
    """A block: `language` of its fence, `reason` why it is not run, and `file` to write it to."""

    page: str
    line: int
    language: str
    text: str
    reason: str
    file: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """Return all blocks of a page in order."""
    text = page.read_text("utf-8")
    assert text.count("\n```") % 2 == 0, f"{page}: a block does not end, or is indented"
    for found in _FENCE.finditer(text):
        before = text[: found.start()]
        said = _COMMENT.search(before)
        kind, words = (said[1], said[2]) if said else ("", "")
        yield Block(
            str(page.relative_to(PROJECT)) if page.is_relative_to(PROJECT) else page.name,
            before.count("\n") + 1,
            found[1],
            found[2],
            words if kind == "not run" else "",
            words if kind == "file" else "",
        )


def texts_of(page: Path, language: str) -> list[str]:
    """Return the texts of the blocks in one language."""
    return [block.text for block in blocks_of(page) if block.language == language]


class Step(NamedTuple):
    """A command and its output; None if the page does not show the output."""

    command: str
    output: str | None


def steps_of(block: Block) -> list[Step]:
    """Return the commands of a block: each line of `sh`, or the text after `$ ` of `console`, with its output.

    A command continues in lines that are indented (`sh`) or start with `> ` (`console`), and after a backslash.
    """
    lines = block.text.rstrip("\n").split("\n")
    if block.language == "sh":
        return [Step(command, None) for command in _joined(lines, "  ", "")]
    steps: list[Step] = []
    for line in _joined(lines, "> ", "$ "):
        if line.startswith("$ "):
            steps.append(Step(line[2:], ""))
        else:
            assert steps, f"{block.place}: output without a command"
            before = steps[-1]
            steps[-1] = Step(before.command, f"{before.output}{line}\n")
    return steps


def _joined(lines: list[str], goes_on: str, begins: str) -> Iterator[str]:
    """Join the lines of each command; `begins` matches the first line of one."""
    whole: list[str] = []
    for line in lines:
        is_more = whole and whole[0].startswith(begins) and (whole[-1].endswith("\\") or line.startswith(goes_on))
        if is_more:
            whole.append(line.removeprefix(goes_on))
            continue
        if whole:
            yield "\n".join(whole)
        whole = [line] if line.strip() else []
    if whole:
        yield "\n".join(whole)


def fits(printed: str, shown: str) -> bool:
    """Return whether the output matches; `…` stands for text in a line, or alone for any lines."""
    pattern = ""
    for line in _plain(shown):
        if line == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.split("…")) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _plain(printed))) is not None


def _plain(text: str) -> list[str]:
    """Return the lines without colours, trailing spaces and empty lines."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    return [line.rstrip() for line in lines if line.strip()]
