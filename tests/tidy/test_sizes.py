"""A file past 450 lines or a function past 60 asks for a reason: it stands here."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("amqp_broker", "bench", "compat", "pyspark_amqp", "tests")

FILE_LINES_MAX = 450
FUNCTION_LINES_MAX = 60

# path, or path and qualified name, to the reason why it may be longer
REASONS = {
    "amqp_broker/config.py": "one declaration after the other: the list of all settings in one place",
    "amqp_broker/broker/broker.py": "one verb after the other, each a few lines: all that an administrator does",
    "amqp_broker/broker/queue.py": "what is ready, unacked, over a limit and out of time is one invariant",
    "amqp_broker/broker/vhost.py": "one verb after the other, each a few lines, on the same few dicts",
    "amqp_broker/session/session.py": "the frame loop, and what it decides by: parts of one state machine",
    "amqp_broker/session/session.py:Session._run": "the hot path: a call per frame costs more than its length",
    "tests/broker/test_events.py": "one event after the other, all of them heard in the same way",
    "tests/mutations.py:streams": "a table of byte streams, one life of a client after the other",
}


def sources() -> list[tuple[str, str]]:
    return [
        (path.relative_to(ROOT).as_posix(), path.read_text())
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]


def functions(node: ast.AST, prefix: str = "") -> list[tuple[str, int]]:
    """Qualified name and number of lines of each function in a module."""
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
    sizes = {path: len(source.splitlines()) for path, source in sources()}
    assert {path: size for path, size in sizes.items() if size > FILE_LINES_MAX and path not in REASONS} == {}


def test_no_function_is_too_long_without_a_reason() -> None:
    sizes = {f"{path}:{name}": size for path, source in sources() for name, size in functions(ast.parse(source))}
    assert {name: size for name, size in sizes.items() if size > FUNCTION_LINES_MAX and name not in REASONS} == {}


def test_every_reason_is_still_needed() -> None:
    long = set()
    for path, source in sources():
        if len(source.splitlines()) > FILE_LINES_MAX:
            long.add(path)
        long |= {f"{path}:{name}" for name, size in functions(ast.parse(source)) if size > FUNCTION_LINES_MAX}
    assert set(REASONS) <= long


def test_functions_are_counted_wherever_they_stand() -> None:
    source = "class A:\n    def f(self):\n        def g():\n            pass\n\nasync def h():\n    pass\n"
    assert functions(ast.parse(source)) == [("A.f", 3), ("A.f.g", 2), ("h", 2)]
