from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

import pytest

from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.own.command_exit import fail, run_and_exit
from amqp_broker.exit_codes import EX_CONFIG, EX_DATAERR, EX_IOERR
from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.settings.settings import SettingsError


def raising(error: BaseException) -> Callable[[], NoReturn]:
    def command() -> NoReturn:
        raise error

    return command


def end_of(command: Callable[[], object]) -> object:
    """Return the exit code of a command."""
    with pytest.raises(SystemExit) as end:
        run_and_exit(command)
    return end.value.code


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (CommandError("it failed", 70), 70, "amqp-broker: it failed.\n"),
        (
            SettingsError("one is wrong\ntwo is wrong."),
            EX_CONFIG,
            "amqp-broker: one is wrong.\namqp-broker: two is wrong.\n",
        ),
        (DefinitionsError("no\n  queue"), EX_DATAERR, "amqp-broker: no queue.\n"),
        (
            CommandError("it failed. Try:\n  amqp-broker --help", 70),
            70,
            "amqp-broker: it failed. Try:\n  amqp-broker --help\n",
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_of_a_command_is_a_sentence_and_an_exit_code(
    error: BaseException, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end_of(raising(error)) == code
    assert capsys.readouterr() == ("", sentence)


def test_the_line_of_an_interrupted_command_ends_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert end_of(raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr() == ("", "\n")


def test_a_command_without_an_error_ends_with_0() -> None:
    assert end_of(lambda: None) == 0


@pytest.mark.parametrize("error", [ZeroDivisionError(), FileNotFoundError(2, "No such file", "x")], ids=repr)
def test_a_bug_has_its_traceback(error: Exception) -> None:
    with pytest.raises(type(error)):
        run_and_exit(raising(error))


def test_a_failure_is_silent_without_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit):
        fail("it failed", EX_IOERR)
    assert capsys.readouterr().out == ""
