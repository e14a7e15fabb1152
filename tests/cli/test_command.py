from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.cli.command import Command, path_of, words_of
from amqp_broker.cli.main import TOOLS
from amqp_broker.cli.tools import commands_of

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
def test_the_usage_line_says_how_many_arguments_there_may_be(usage: str, counts: tuple[int, int | None]) -> None:
    assert declared(usage).argument_counts() == counts


def test_the_usage_line_says_which_options_there_are() -> None:
    command = declared('[--if-empty|-e] [--vhost <vhost>] [--tags "<a>,<b>"] [--pid|-P <pid>]')
    assert command.options() == {"if_empty": False, "vhost": True, "tags": True, "pid": True}
    assert command.letters() == {"e": "if_empty", "P": "pid"}


@pytest.mark.parametrize("command", ALL.values(), ids=lambda command: command.name)
def test_every_command_says_what_it_is_and_does_something(command: Command) -> None:
    assert command.about
    assert command.run is not None or command.asks is not None or command.name == "help"
    assert set(command.shown.split()) <= set(command.columns)


def test_words_are_options_in_all_their_forms() -> None:
    words = ["-q", "--vhost", "v", "--node=n", "x", "-p", "w", "--bogus", "--quiet=false", "--", "--y"]
    options = {"quiet": False, "vhost": True, "node": True}
    assert list(words_of(words, options, {"q": "quiet", "p": "vhost"})) == [
        ("quiet", True),
        ("vhost", "v"),
        ("node", "n"),
        ("", "x"),
        ("vhost", "w"),
        ("?", "--bogus"),
        ("quiet", False),
        ("", "--y"),
    ]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_word_in_a_path_is_quoted_as_urllib_does(word: str) -> None:
    assert path_of(word) == quote(word, safe="")
