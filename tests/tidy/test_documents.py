"""The documents at the top name functions and options that exist, and stay short."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from amqp_broker import __version__
from amqp_broker.settings import settings
from tests.tidy.layers import LAYERS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "amqp_broker"

ARCHITECTURE_WORDS_MAX = 2500
CHANGELOG_LINES_MAX = 60
# Characters of a change, without the addresses of its links.
CHANGE_LENGTH_MAX = 140
BEHAVIOURS_MIN = 20


def text_of(document: str) -> str:
    return (ROOT / document).read_text("utf-8")


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the functions and classes of a module, with those of a class as `Class.name`."""
    found = set()
    for node in ast.parse((PACKAGE / path).read_text("utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            functions = [part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
            found |= {f"{node.name}.{function.name}" for function in functions}
    return frozenset(found)


@cache
def functions_by_owner() -> dict[str, set[str]]:
    """Return the names of functions and attributes by class and by module."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        module = found.setdefault(path.stem, set())
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                module.add(node.name)
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).update(members_of(node))
    return found


def members_of(node: ast.ClassDef) -> set[str]:
    """Return the names that a class gives to methods and attributes."""
    members = set()
    for part in ast.walk(node):
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            members.add(part.name)
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            members.add(part.attr)
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            members.add(part.target.id)
    return members


def code_of(text: str) -> str:
    """Return the fenced blocks and the code between backticks."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))


def names_of(text: str) -> list[tuple[str, str]]:
    """Return the names `Class.method` and `module.function` in the code of a document."""
    found = set(re.findall(r"(?<![\w./@])([A-Za-z]\w*)\.(\w+)(?![\w./])", code_of(text)))
    return sorted(name for name in found if name[1] not in ENDINGS and name[0] not in FOREIGN)


# Endings of files, and modules and names of others.
ENDINGS = {"conf", "js", "md", "py"}
FOREIGN = {"amq", "os"}

NAMES = names_of(text_of("ARCHITECTURE.md"))
BEHAVIOURS = re.findall(
    r"^\| (.+) \| `([\w/]+\.py)` \| `([\w.]+)` \|$", text_of("docs/development/where.md"), re.MULTILINE
)


def test_architecture_is_short() -> None:
    assert len(text_of("ARCHITECTURE.md").split()) < ARCHITECTURE_WORDS_MAX


@pytest.mark.parametrize(("owner", "name"), NAMES)
def test_a_function_that_architecture_names_exists(owner: str, name: str) -> None:
    assert name in functions_by_owner().get(owner, set())


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([A-Z]\w+)`", text_of("ARCHITECTURE.md"))) - {"None"}))
def test_a_class_that_architecture_names_exists(name: str) -> None:
    assert name in functions_by_owner()


def test_the_files_that_architecture_names_exist() -> None:
    named = re.findall(r"`([a-z_]+(?:/\w+)*(?:/|/\w+\.py))`", text_of("ARCHITECTURE.md"))
    assert len(named) > 30
    assert [name for name in named if not (PACKAGE / name).exists() and not (ROOT / name).exists()] == []


def test_architecture_has_the_table_of_layers() -> None:
    layers: dict[str, set[str]] = {}
    for package, layer in LAYERS.items():
        top = package.partition("/")[0]
        layers.setdefault(top, set()).update({other.partition("/")[0] for other in layer.packages} - {top})
    section = text_of("ARCHITECTURE.md").partition("## Layers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", section, re.MULTILINE)
    assert {package: set(re.findall(r"`(\w+)`", imports)) for package, imports in rows} == layers


def test_names_of_functions_are_found_in_code() -> None:
    text = "`Queue.push` and `a/b.py`, `x.py`; Queue.pull\n```\nqueue.check   Text.\n```\n`amq.rabbitmq.event`"
    assert names_of(text) == [("Queue", "push"), ("queue", "check")]


def test_there_is_a_table_of_behaviours() -> None:
    section = text_of("docs/development/where.md")
    assert len(BEHAVIOURS) == section.count("\n|") - 2 >= BEHAVIOURS_MIN


@pytest.mark.parametrize(("behaviour", "path", "name"), BEHAVIOURS)
def test_a_behaviour_is_where_the_table_says(behaviour: str, path: str, name: str) -> None:
    assert name in names_in(path), f"docs/development/where.md, {behaviour}"


def test_the_changelog_begins_with_unreleased_changes_and_those_of_the_version() -> None:
    unreleased, version, *_ = re.findall(r"^## (.*)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert unreleased == "Unreleased"
    assert re.fullmatch(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", version)


def test_a_change_since_the_first_version_is_one_line() -> None:
    later = text_of("CHANGELOG.md").partition("\n## Unreleased\n")[2].partition("\n## 0.1.0\n")[0]
    lines = [line for line in later.splitlines() if line and not line.startswith("#")]
    # The paragraphs between groups of changes are one line, too.
    assert [line for line in lines if not re.match(r"- |[A-Z].*:$", line)] == []
    assert [line for line in lines if len(re.sub(r"\]\([^)]*\)", "", line)) > CHANGE_LENGTH_MAX] == []


def test_the_first_version_of_the_changelog_is_short() -> None:
    section = text_of("CHANGELOG.md").partition("\n## 0.1.0\n")[2].partition("\n## ")[0]
    assert 0 < len(section.splitlines()) <= CHANGELOG_LINES_MAX


def test_the_options_that_security_names_exist() -> None:
    named = set(re.findall(r"`(--[\w-]+)", text_of("SECURITY.md")))
    known = {option for setting in settings.SETTINGS for names in setting.options for option in names.split("/")}
    assert len(named) > 5
    assert named - known - {"--version"} == set()
