"""Commands and forms of `eval` are read back another way, and after a restart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.cli.rabbitmq.evaluation import EXPRESSIONS
from amqp_broker.cli.rabbitmq.tool_main import commands_of
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from tests.readback.case import Case
from tests.readback.ctl_writes import ACCESS, NODE, OBJECTS, READING, WITHOUT_EFFECT
from tests.readback.eval_writes import FORMS, VARIABLES
from tests.readback.node import Node, running

SHARED = (*ACCESS, *OBJECTS)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running(tmp_path_factory.mktemp("node")) as node:
        yield node


def test_every_command_that_writes_is_read_back() -> None:
    commands = {name for tool in TOOLS.values() for name in commands_of(tool)}
    writes = {name for name in commands if not name.startswith(READING)}
    assert writes == {case.name for case in (*SHARED, *NODE)} | WITHOUT_EFFECT.keys()


def test_every_form_of_eval_that_writes_is_read_back() -> None:
    assert {form for form in EXPRESSIONS if re.search(r":(set|clear)_", form)} == {case.name for case in FORMS}


@pytest.mark.parametrize("case", SHARED, ids=lambda case: case.name)
def test_a_write_is_read_back(node: Node, case: Case) -> None:
    case.play(node)


@pytest.mark.parametrize("case", [*NODE, *FORMS, *VARIABLES], ids=lambda case: case.name)
def test_a_write_to_the_whole_broker_is_read_back(tmp_path: Path, case: Case) -> None:
    with running(tmp_path) as node:
        case.play(node)


def test_durable_writes_are_read_after_a_restart(tmp_path: Path) -> None:
    kept = [case for case in SHARED if case.is_kept]
    with running(tmp_path) as node:
        for case in kept:
            for step in (*case.before, case.write):
                step(node)
        node.restart()
        found = {case.name: case.read(node) for case in kept}
    assert found == {case.name: case.expected for case in kept}
