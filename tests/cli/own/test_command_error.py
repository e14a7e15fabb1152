from __future__ import annotations

from amqp_broker.cli.own.command_error import CommandError


def test_a_failure_has_its_sentence_and_its_exit_code() -> None:
    error = CommandError("cannot do it.", 69)
    assert (str(error), error.exit_code) == ("cannot do it.", 69)
