"""Text is read and written as UTF-8, whatever the encoding of the machine's locale."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("amqp_broker", "bench", "compat", "docs", "examples", "packages", "pyspark_amqp", "tests")

# Number of arguments before the encoding.
METHODS = {"read_text": 0, "write_text": 1}


def in_the_locales_encoding(source: str) -> list[int]:
    """Return the lines of calls that leave the encoding to the locale."""
    lines: list[int] = []
    # Most modules have no such call, and parsing them would take most of the time.
    if not any(name in source for name in (*METHODS, "text=")):
        return lines
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        keywords = {keyword.arg for keyword in node.keywords}
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        is_text = "text" in keywords and name in ("run", "Popen", "check_output")
        is_file = name in METHODS and len(node.args) == METHODS[name]
        if (is_text or is_file) and "encoding" not in keywords:
            lines.append(node.lineno)
    return lines


def test_no_encoding_is_left_to_the_locale() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in in_the_locales_encoding(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("call", ["path.read_text()", "path.write_text('x')", "subprocess.run(['ls'], text=True)"])
def test_a_call_without_an_encoding_is_found(call: str) -> None:
    assert in_the_locales_encoding(call) == [1]


@pytest.mark.parametrize(
    "call",
    ["path.read_text('utf-8')", "path.write_text('x', encoding='utf-8')", "subprocess.run(['ls'], encoding='utf-8')"],
)
def test_a_call_with_an_encoding_is_passed_over(call: str) -> None:
    assert in_the_locales_encoding(call) == []
