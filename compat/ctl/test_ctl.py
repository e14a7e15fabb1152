"""The tools print the same as RabbitMQ's tools, except for the differences in `differences.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from compat.ctl.comparing import problems
from compat.ctl.differences import AT_AMQP_BROKER, AT_RABBITMQ, Difference
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


def compare(question: str, recorded: Seen, said: Said, differences: Sequence[Difference]) -> None:
    found = problems(question, recorded.get(question, []), said[question], differences)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize("question", LINES)
def test_the_tools_print_what_rabbitmqs_tools_printed(said_by_amqp_broker: Said, recorded: Seen, question: str) -> None:
    compare(question, recorded, said_by_amqp_broker, AT_AMQP_BROKER)


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
    compare(question, recorded, {question: said}, AT_AMQP_BROKER)


@pytest.mark.verify
@pytest.mark.parametrize("question", [question for area in ToolsAtRabbitMQ.areas for question in questions(area)])
def test_the_tools_print_the_same_at_a_rabbitmq(said_at_rabbitmq: Said, recorded: Seen, question: str) -> None:
    compare(question, recorded, said_at_rabbitmq, AT_RABBITMQ)


def test_every_recorded_command_line_is_still_run(recorded: Seen) -> None:
    assert recorded.keys() == LINES.keys()


def test_every_listed_difference_belongs_to_a_command_line() -> None:
    assert {
        change.question for listed in (AT_AMQP_BROKER, AT_RABBITMQ) for one in listed for change in one.changes
    } <= set(LINES)
