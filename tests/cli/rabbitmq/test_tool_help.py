from __future__ import annotations

import pytest

from amqp_broker.cli.rabbitmq.tool_help import general_help, likeness_of
from tests.cli.canned import run_without_node


def test_an_unknown_command_gets_a_suggestion_or_the_overview() -> None:
    done = run_without_node("rabbitmqctl add_usr x y")
    assert (done.exit_code, done.complaint) == (
        64,
        "\nCommand 'add_usr' not found. \nDid you mean 'add_user'? \n\n",
    )
    done = run_without_node("rabbitmqctl zzzzzz")
    assert "Available commands:" in done.complaint
    assert "Did you mean" not in done.complaint


@pytest.mark.parametrize(
    "line", ["rabbitmqctl list_queues --help", "rabbitmqctl help list_queues", "rabbitmqctl list_queues -h"]
)
def test_help_of_a_command_has_its_usage_and_columns(line: str) -> None:
    done = run_without_node(line)
    assert done.exit_code == 0
    assert "[--offline]" in done.output
    assert "must be one of arguments, auto_delete, " in done.output


def test_options_before_help_are_not_the_command() -> None:
    done = run_without_node("rabbitmqctl --node X help list_queues")
    assert (done.exit_code, "[--offline]" in done.output) == (0, True)
    assert run_without_node("rabbitmqctl -p v help") == run_without_node("rabbitmqctl help")


@pytest.mark.parametrize("words", ["", "--help", "help", "-q"])
def test_help_of_a_tool_lists_its_commands(words: str) -> None:
    done = run_without_node(f"rabbitmq-diagnostics {words}")
    assert "   check_running " in done.output + done.complaint
    assert "add_user" not in done.output + done.complaint
    assert done.exit_code == (0 if "help" in words else 64)


def test_suggestions_use_the_jaro_similarity() -> None:
    assert likeness_of("MARTHA", "MARHTA") == pytest.approx(0.944, abs=0.001)
    assert likeness_of("DIXON", "DICKSONX") == pytest.approx(0.767, abs=0.001)
    assert likeness_of("", "a") == 0


def test_general_options_are_aligned() -> None:
    lines = general_help().splitlines()
    assert "-?, -h  --help             show this help" in lines
    assert "-p      --vhost <vhost>    the virtual host, for commands that are scoped to one" in lines
    assert not any("erlang-cookie" in line for line in lines)
