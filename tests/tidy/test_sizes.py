"""A file of more than 450 lines or a function of more than 60 needs a reason in this module."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("amqp_broker", "bench", "compat", "packages", "pyspark_amqp", "tests")

FILE_LINES_MAX = 450
FUNCTION_LINES_MAX = 60

# Path, or path and qualified name, to the reason for its length.
REASONS = {
    "amqp_broker/settings/settings.py": "the declarations of all settings, one after the other",
    "amqp_broker/cli/rabbitmq/runtime_commands.py": "for the most part one table, with a command in each entry",
    "amqp_broker/store/environment.py": "all refusals of a folder, in the order in which they are decided",
    "tests/simulation/bugs_in_extensions.py": "a list of planted bugs",
    "amqp_broker/session/wire/reader.py:FrameReader._run": "the hot path: a call per frame costs more than its length",
    "tests/broker/observe/test_events.py": "a test for each event, all of the same form",
    "tests/mutations.py:streams": "a table of byte streams, one for each kind of client",
}


@cache
def sources() -> dict[str, str]:
    """Return the source of each module, by path."""
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]
    return {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in files}


@cache
def file_sizes() -> dict[str, int]:
    """Return the number of lines, by path."""
    return {path: len(source.splitlines()) for path, source in sources().items()}


@cache
def function_sizes() -> dict[str, int]:
    """Return the number of lines, by path and qualified name."""
    return {f"{path}:{name}": size for path, source in sources().items() for name, size in functions(ast.parse(source))}


def functions(node: ast.AST, prefix: str = "") -> list[tuple[str, int]]:
    """Return the qualified name and number of lines of each function in a module."""
    found = []
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{prefix}.{child.name}" if prefix else child.name
            if not isinstance(child, ast.ClassDef):
                assert child.end_lineno is not None
                found.append((name, child.end_lineno - child.lineno + 1))
        found += functions(child, name)
    return found


def test_no_file_is_too_long_without_a_reason() -> None:
    long = {path: size for path, size in file_sizes().items() if size > FILE_LINES_MAX}
    assert {path: size for path, size in long.items() if path not in REASONS} == {}


def test_no_function_is_too_long_without_a_reason() -> None:
    long = {name: size for name, size in function_sizes().items() if size > FUNCTION_LINES_MAX}
    assert {name: size for name, size in long.items() if name not in REASONS} == {}


def test_every_reason_is_still_needed() -> None:
    long = {path for path, size in file_sizes().items() if size > FILE_LINES_MAX}
    long |= {name for name, size in function_sizes().items() if size > FUNCTION_LINES_MAX}
    assert set(REASONS) <= long


def test_nested_functions_and_methods_are_counted() -> None:
    source = "class A:\n    def f(self):\n        def g():\n            pass\n\nasync def h():\n    pass\n"
    assert functions(ast.parse(source)) == [("A.f", 3), ("A.f.g", 2), ("h", 2)]
