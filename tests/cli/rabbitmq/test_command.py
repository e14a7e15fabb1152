from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.cli.rabbitmq.command import Command
from amqp_broker.cli.rabbitmq.options import Option
from amqp_broker.cli.rabbitmq.tool_main import commands_of
from amqp_broker.cli.rabbitmq.tool_names import TOOLS
from amqp_broker.cli.rabbitmq.words import path_of
from tests.cli.canned import canned

ALL = {command.name: command for tool in TOOLS.values() for command in commands_of(tool).values()}


def declared(usage: str) -> Command:
    return Command("c", usage, "", "")


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ("", (0, 0)),
        ("<username> <password>", (2, 2)),
        ("[--vhost <vhost>] <queue> [--timeout <timeout>]", (1, 1)),
        ("[--vhost <vhost>] <username> [<exchange>]", (1, 2)),
        ("[--no-table-headers] [<column> ...] [--timeout <timeout>]", (0, None)),
        ("[--local] [<column>, ...]", (0, None)),
        ("[<pidfile>] [--pid|-P <pid>]", (0, 1)),
        ('<file_path | "-"> [--format <json | erlang>]', (1, 1)),
    ],
)
def test_the_usage_line_declares_the_number_of_arguments(usage: str, counts: tuple[int, int | None]) -> None:
    assert declared(usage).argument_counts() == counts


def test_the_usage_line_declares_options() -> None:
    command = declared('[--if-empty|-e] [--vhost <vhost>] [--tags "<a>,<b>"] [--pid|-P <pid>] [--limit <limit>]')
    assert command.options() == [
        Option("if-empty", letters="e"),
        Option("vhost", "<vhost>"),
        Option("tags", '"<a>,<b>"'),
        Option("pid", "<pid>", letters="P"),
        Option("limit", "<limit>", is_integer=True),
    ]


def test_every_command_has_a_description_and_an_effect() -> None:
    for command in ALL.values():
        assert command.about, command.name
        assert command.run is not None or command.asks is not None or command.name == "help", command.name
        assert set(command.shown.split()) <= set(command.columns), command.name


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_word_in_a_path_is_quoted_as_urllib_does(word: str) -> None:
    assert path_of(word) == quote(word, safe="")


@pytest.mark.parametrize("command", ["ctl delete_vhost ''", "ctl change_password '' x", "-queues quorum_status ''"])
def test_an_empty_name_is_refused_before_its_path_means_a_list(command: str) -> None:
    with canned({"GET /api/users/": [], "GET /api/vhosts/": [], "GET /api/queues/%2F/": []}) as api:
        done = api.run(f"rabbitmq{command}")
        assert (done.exit_code, done.complaint) == (65, "Error:\nthe name of an object must not be empty\n")
        assert not api.changes()
