"""Each action of a fault rule is tested with real clients.

A suite tests an action if it passes the action to `faults.add` or parametrizes a test by it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.broker.lab.fault_rules import ACTIONS

COMPAT = Path(__file__).parents[2] / "compat"
GO, PYTHON = ("go",), ("pika", "aio_pika", "celery")
# The actions that every client must survive as a publisher.
PUBLISHER_ACTIONS = ("confirm_nack", "confirm_delay", "confirm_drop", "return", "block", "cut")


def texts(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def actions_in(source: str) -> set[str]:
    """Return the actions that a test module makes the broker perform."""
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


def actions_of(client: str) -> set[str]:
    return actions_in((COMPAT / client / "test_faults.py").read_text("utf-8"))


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
def test_each_action_is_actions_of_clients_of_two_languages(action: str) -> None:
    assert [client for client in GO if action in actions_of(client)], f"no Go test under {action}"
    assert [client for client in PYTHON if action in actions_of(client)], f"no test of a Python client under {action}"


@pytest.mark.parametrize("client", [*GO, *PYTHON])
def test_each_client_survives_the_faults_of_publishers(client: str) -> None:
    assert [action for action in PUBLISHER_ACTIONS if action not in actions_of(client)] == []
    assert "_restart" in (COMPAT / client / "test_faults.py").read_text("utf-8"), "no test with a restart"
