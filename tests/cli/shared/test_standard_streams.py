"""Commands with standard files that are closed or full, and with arguments that are not text."""

from __future__ import annotations

import subprocess

import pytest

from amqp_broker.cli.shared.standard_streams import not_text
from tests.cli.program import MODULE, environment, run

COMMANDS = ("ctl version", "diagnostics -q ping", "plugins list", "admin --version", "check-config", "run -- true")


def run_in_shell(line: str, files: str = "") -> tuple[int, str]:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {files}', "sh", *MODULE, *line.split()],
        env=environment(AMQP_BROKER_RUNTIME_DIR="/nowhere", RABBITMQ_ENABLED_PLUGINS_FILE="/nowhere"),
        capture_output=True,
        timeout=20,
        check=False,
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("line", COMMANDS)
def test_closed_standard_files_have_no_effect(line: str) -> None:
    code, told = run_in_shell(line, "<&- >&-")
    assert code == run(*line.split(), AMQP_BROKER_RUNTIME_DIR="/nowhere").returncode
    assert "Traceback" not in told


@pytest.mark.parametrize("line", ["ctl version", "plugins list", "check-config"])
def test_output_that_cannot_be_written_has_exit_code_74(line: str) -> None:
    code, told = run_in_shell(line, ">/dev/full")
    assert (code, told) == (74, "amqp-broker: the output cannot be written: No space left on device.\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["ctl", "add_user", b"\xff", "b"], 64),
        (["admin", "list", b"\xff"], 1),
        (["store", "info", b"\xff"], 64),
    ],
)
def test_arguments_that_are_not_text_are_refused(words: list[str | bytes], code: int) -> None:
    done = subprocess.run([*MODULE, *words], env=environment(), capture_output=True, timeout=20, check=False)
    assert done.returncode == code
    assert b"is not text in UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr


def test_the_first_argument_that_is_not_text_is_shown_in_ascii() -> None:
    assert not_text(["a", "\udcff", "\udcfe"]) == "'\\udcff'"
    assert not_text(["a", "é"]) == ""
