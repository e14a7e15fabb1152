"""Words that no file may contain. They are joined from pieces, so that this file does not contain them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (".ci", ".github", "amqp_broker", "bench", "compat", "container", "docs", "packages", "pyspark_amqp", "tests")

UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b")
# pip and other package managers choose the registry, and their users configure it.
REGISTRIES = re.compile(
    r"\b(" + "|".join(["py" + r"pi\.org", "python" + "hosted", r"npm" + r"js\.", "crates" + r"\.io"]) + ")"
)
# Folders that only one machine has. `/tmp/x` may be an example.
MACHINES = re.compile(r"(?<![\w.~$}])/(" + "|".join(["wo" + "rk", "ro" + "ot", "ho" + r"me/\w+", "Us" + "ers"]) + r")/")

# A module is named after the noun it serves.
VAGUE = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc", "base", "lib"}

OURS = ("amqp_broker/", "pyspark_amqp/")
# Their functions have sentences as names, as tests have.
SCENARIOS = "amqp_broker/conformance/scenarios/"
# One word per thing, units and bounds last: patterns that no name may match, and the form to use instead.
VOCABULARY = {
    r"enqueue": "push",
    r"dequeue": "pull",
    # ssl.SSLContext.num_tickets is Python's name.
    r"^(max|min|num(?!_tickets$)|n)_": "…_max, …_min, …_count",
    r"_(secs?|seconds)$": "…_s",
    r"_(millis|msec|milliseconds)$": "…_ms",
    r"_(flag|obj|info|data)$": "a fact (is_…) or a noun",
    r"(^|_)collectors?(_|$)": "ready_consumers",
    r"clogged": "backpressured",
    r"untake": "return_to_head",
    r"(^|_)deaf(_|$)": "ignores_input",
    r"(?i)gust|storm": "fault event, fault plan",
    r"(?i)(^|_)(un)?taps?(_|$)": "observer, observe",
    r"(?i)^lag$|_lag$": "output_delay",
    r"(?i)nowhere": "gone",
    r"(?i)^turns$": "consumer_rotation",
    r"(^|_)(nobody|somebody|whoever)(_|$)": "the noun that is meant",
}


@cache
def texts() -> list[tuple[str, str]]:
    """Return path and text of every file of the project."""
    # In a worktree .git is a file.
    files = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for folder in FOLDERS:
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    found = []
    for path in sorted(files):
        with suppress(UnicodeDecodeError):  # not text
            found.append((path.relative_to(ROOT).as_posix(), path.read_text("utf-8")))
    return found


def places(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_the_files_are_found() -> None:
    found = {path for path, _ in texts()}
    assert {"pyproject.toml", "amqp_broker/amqp/errors.py", "tests/tidy/test_words.py"} <= found


def test_nothing_is_marked_as_unfinished() -> None:
    assert places(UNFINISHED) == []


def test_no_registry_is_named() -> None:
    assert places(REGISTRIES) == []


def test_no_folder_of_one_machine_is_named() -> None:
    assert places(MACHINES) == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (UNFINISHED, "# TO" + "DO: later"),
        (REGISTRIES, "https://py" + "pi.org/simple"),
        (MACHINES, "open('/ro" + "ot/x')"),
        (MACHINES, "PYTHON=/ho" + "me/anna/bin/python"),
    ],
)
def test_a_forbidden_word_is_found(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)


@pytest.mark.parametrize("text", ["docs.example/wo" + "rk/x", "$HOME/wo" + "rk/", "the net" + "work/loop", "/workers/"])
def test_other_paths_are_passed_over(text: str) -> None:
    assert not MACHINES.search(text)


def test_every_module_is_named_after_what_it_serves() -> None:
    assert [path for path, _ in texts() if path.endswith(".py") and Path(path).stem in VAGUE] == []


def defined_names(source: str) -> Iterator[str]:
    """Yield the names that a module gives to functions, classes, arguments and attributes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def unusual(source: str) -> list[str]:
    return [
        f"{name}: say {instead}"
        for name in sorted(set(defined_names(source)))
        for pattern, instead in VOCABULARY.items()
        if re.search(pattern, name)
    ]


def test_every_name_follows_the_vocabulary() -> None:
    modules = {path: text for path, text in texts() if path.startswith(OURS) and path.endswith(".py")}
    found = {path: unusual(text) for path, text in modules.items() if not path.startswith(SCENARIOS)}
    assert {path: names for path, names in found.items() if names} == {}


def test_unusual_names_are_found() -> None:
    assert unusual("class A:\n    def enqueue(self, max_size):\n        self.timeout_seconds = 1") == [
        "enqueue: say push",
        "max_size: say …_max, …_min, …_count",
        "timeout_seconds: say …_s",
    ]
