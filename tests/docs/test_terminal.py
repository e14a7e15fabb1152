from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


def test_a_command_returns_exit_code_and_output(terminal: Terminal) -> None:
    assert terminal.run("echo a; echo b >&2; exit_with() { return 3; }; exit_with") == (3, "a\nb\n")


def test_later_output_of_a_background_command_belongs_to_the_next_command(terminal: Terminal) -> None:
    # The shell prints the end of a command before the background command may print.
    assert terminal.run("mkfifo go; (cat go; echo late) & echo early") == (0, "early\n")
    assert terminal.run("echo on > go; wait") == (0, "on\nlate\n")


def test_output_may_follow_the_end_of_a_command_at_once(terminal: Terminal) -> None:
    assert terminal.run("printf '\\nend of command 7\\nlate\\n'")[0] == 7
    assert terminal.run("true") == (0, "late\n")


def test_folder_and_variables_persist_and_home_is_empty(terminal: Terminal) -> None:
    terminal.run("mkdir x; cd x; export A=1")
    assert terminal.run('echo "$A $(basename "$PWD") $(ls -A "$HOME")"') == (0, "1 x \n")


def test_output_has_the_ports_of_the_pages(terminal: Terminal) -> None:
    assert terminal.run("echo localhost:15672") == (0, "localhost:15672\n")
    assert terminal.run("test localhost:15672 = localhost:$((15600 + 72))")[0] == 1


def test_a_new_broker_replaces_the_previous_one(terminal: Terminal) -> None:
    code, printed = terminal.run("amqp-broker serve --ephemeral   # a comment")
    assert code == 0
    assert "started TCP listener on 127.0.0.1:5672" in printed
    first = terminal.run("amqp-broker ctl status | grep PID")
    terminal.run("amqp-broker serve --ephemeral")
    second = terminal.run("amqp-broker ctl status | grep PID")
    assert first[0] == second[0] == 0
    assert first != second


def test_a_broker_that_does_not_start_returns_its_exit_code(terminal: Terminal) -> None:
    assert terminal.run("amqp-broker serve --compat 1.0")[0] == 78
