"""Each package says what it contains, and a module's name says which package it belongs to."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "amqp_broker"

FOLDERS = sorted({path.parent for name in ("amqp_broker", "pyspark_amqp") for path in (ROOT / name).rglob("*.py")})

# One module per noun that users see: their names repeat those of the modules that do the work.
BY_NOUN = {"management/api", "cli/own", "conformance/scenarios"}

# Names of modules in several packages, and the reason.
SHARED_NAMES = {
    "capture": "the capture, and its endpoint, command and fixture",
    "columns": "columns of rabbitmqctl, and those that a request selects",
    "event_log": "the event log, and its endpoint and fixture",
    "journal": "the interface, and the journal on LMDB",
    "types": "the table of exchange types, and that of queue types",
}


def docstring_of(folder: Path) -> str:
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""


def is_described(docstring: str) -> bool:
    """Return whether the first paragraphs have at least two sentences and name a file or a package."""
    return len(re.findall(r"[.?!](?=\s|$)", docstring)) >= 2 and "`" in docstring


def packages_by_module() -> dict[str, set[str]]:
    """Return the packages that have a module of each name, without those that repeat the nouns of others."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        package = path.parent.relative_to(PACKAGE).as_posix()
        if not path.stem.startswith("__") and package not in BY_NOUN:
            found[path.stem].add(package)
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_a_package_is_described(folder: Path) -> None:
    assert is_described(docstring_of(folder))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_the_files_that_a_package_names_exist(folder: Path) -> None:
    named = re.findall(r"`(\w[\w/]*(?:\.py|/))`", docstring_of(folder))
    roots = (folder, *[parent for parent in folder.parents if parent.is_relative_to(ROOT)])
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []


def test_two_modules_of_one_name_have_a_reason() -> None:
    shared = {name: sorted(packages) for name, packages in packages_by_module().items() if len(packages) > 1}
    assert {name: packages for name, packages in shared.items() if name not in SHARED_NAMES} == {}
    assert sorted(set(SHARED_NAMES) - set(shared)) == [], "no longer shared"
