"""The tools print the same in processes of their own, and at a RabbitMQ, except for `differences.py`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from compat.ctl.comparing import fields, problems
from compat.ctl.differences import AT_RABBITMQ
from compat.ctl.lines import AREAS, questions
from compat.ctl.playing import told
from compat.ctl.running import AmqpBrokerSide, ToolsAtRabbitMQ
from compat.ctl.suite import CTL
from compat.oracle.records import Seen, load

# By question.
LINES = {question: line for area in AREAS for question, line in questions(area).items()}
Said = Mapping[str, list[str]]


@pytest.fixture(scope="module")
def recorded() -> Seen:
    return load(CTL)


@pytest.mark.parametrize(
    "question",
    [
        "health/rabbitmqctl ping",
        "health/rabbitmq-diagnostics -q check_running",
        "refused/rabbitmqctl change_password nobody pw",
        "refused/rabbitmqctl list_queues --bogus",
        "refused/rabbitmqctl add_usr x y",
        "admin/rabbitmqadmin -f raw_json list vhosts name",
        "admin/rabbitmqadmin delete queue name=nothing",
    ],
)
def test_a_separate_process_prints_the_same(new: AmqpBrokerSide, recorded: Seen, question: str) -> None:
    area = question.partition("/")[0]
    said = told(area, new.run_a_process(LINES[question]), new.node)
    assert any(not fields(question, lines, said) for lines in recorded[question])


@pytest.mark.verify
@pytest.mark.parametrize("question", [question for area in ToolsAtRabbitMQ.areas for question in questions(area)])
def test_the_tools_print_the_same_at_a_rabbitmq(said_at_rabbitmq: Said, recorded: Seen, question: str) -> None:
    found = problems(question, recorded[question], said_at_rabbitmq[question], AT_RABBITMQ)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_every_listed_difference_belongs_to_a_command_line() -> None:
    assert {change.question for one in AT_RABBITMQ for change in one.changes} <= set(LINES)
