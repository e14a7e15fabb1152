"""Links of documents lead to files and headings, and all files that prose names exist."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.tidy.language import ROOT, files, texts_of

PAGES = [path for path in files() if path.endswith(".md")]
MODULES = [path for path in files() if path.endswith(".py")]
NAME = re.compile(r"(?<![\w.*/<>-])(?:[\w.-]+/)*[\w-]+\.(?:py|md|js|sh)\b")
# RabbitMQ's page has this file.
FOREIGN = {"dispatcher.js"}


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchor(heading: str) -> str:
    """Return the fragment of a heading's address, as GitHub makes it."""
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


@cache
def anchors(path: str) -> frozenset[str]:
    headings = re.findall(r"^#+ (.+)$", without_blocks((ROOT / path).read_text("utf-8")), re.MULTILINE)
    return frozenset(map(anchor, headings))


def broken_links(path: str, text: str) -> list[str]:
    """Return the links in a document that lead to no file or to no heading."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target, _, fragment = link.partition("#")
        if "://" in link:
            continue
        file = (ROOT / path).parent / target if target else ROOT / path
        if not file.exists() or (
            fragment and fragment not in anchors(file.resolve().relative_to(ROOT.resolve()).as_posix())
        ):
            broken.append(link)
    return broken


def unknown_files(text: str) -> list[str]:
    """Return the names of files in a text that are not in the repository."""
    names = set(NAME.findall(text)) - FOREIGN
    return sorted(name for name in names if not any(f"/{path}".endswith(f"/{name.lstrip('./')}") for path in files()))


@pytest.mark.parametrize("path", PAGES)
def test_links_lead_to_files_and_headings(path: str) -> None:
    assert broken_links(path, (ROOT / path).read_text("utf-8")) == []


@pytest.mark.parametrize("path", PAGES)
def test_files_that_a_document_names_exist(path: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    written_by_the_reader = set(re.findall(r"<!-- file: (\S+) -->", text))
    assert set(unknown_files(without_blocks(text))) - written_by_the_reader == set()


def test_files_that_docstrings_and_comments_name_exist() -> None:
    unknown = [
        f"{path}:{text.line}: {name}"
        for path in MODULES
        for text in texts_of(path)
        for name in unknown_files(text.text)
    ]
    assert unknown == []


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("[a](README.md), [b](#contributing), [c](https://example.com/x#y)", []),
        ("[a](docs/faults.md#fields-of-a-rule)", []),
        ("[a](docs/faults.md#fields)", ["docs/faults.md#fields"]),
        ("[a](docs/missing.md)", ["docs/missing.md"]),
        ("[a](#nothing)", ["#nothing"]),
    ],
)
def test_a_broken_link_is_found(text: str, broken: list[str]) -> None:
    assert broken_links("CONTRIBUTING.md", text) == broken


def test_an_unknown_file_is_found() -> None:
    text = (
        "`broker/lab/fault_rules.py`, test_references.py, lab/faults.py and `broker/*/surroundings.py` in <name>_x.py"
    )
    assert unknown_files(text) == ["lab/faults.py"]
