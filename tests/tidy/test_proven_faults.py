"""Each action of faults is proven with real clients: which suite has which is read from what the suites add.

An action is in a suite where it is what `faults.add` is called with, or what a test is parametrized by.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.broker.fault_rules import ACTIONS

COMPAT = Path(__file__).parents[2] / "compat"
GO, PYTHON = ("go",), ("pika", "aio_pika", "celery")
# What a publisher meets in bad weather: with each of the clients.
STORM = ("confirm_nack", "confirm_delay", "confirm_drop", "return", "block", "cut")


def texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def actions_in(source: str) -> set[str]:
    """The actions that a module of tests has the broker do."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.For):
            found.update(texts(node.iter))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr == "parametrize":
                found.update(texts(ast.Tuple(node.args[1:])))
            elif node.func.attr == "add" and "faults" in ast.unparse(node.func.value):
                found.update(texts(node.args[0]))
    return found & set(ACTIONS)


def proven_with(client: str) -> set[str]:
    return actions_in((COMPAT / client / "test_faults.py").read_text())


def test_actions_are_found_where_a_rule_is_added_or_a_test_is_parametrized() -> None:
    source = """
@pytest.mark.parametrize(("action", "said"), [("cut", {}), ("reset", {"text": "refuse"})])
def test_one(action):
    running.faults.add(action, text="black_hole")
    running.faults.add("block")
    names.add("latency")
    for other in ("return", "duplicate"):
        pass
"""
    assert actions_in(source) == {"cut", "reset", "refuse", "block", "return", "duplicate"}


@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_is_proven_with_clients_of_two_languages(action: str) -> None:
    assert [client for client in GO if action in proven_with(client)], f"no Go test under {action}"
    assert [client for client in PYTHON if action in proven_with(client)], f"no test of a Python client under {action}"


@pytest.mark.parametrize("client", [*GO, *PYTHON])
def test_each_client_is_proven_under_the_storm(client: str) -> None:
    assert [action for action in STORM if action not in proven_with(client)] == []
    assert "_restart" in (COMPAT / client / "test_faults.py").read_text(), "no test with a restart"
