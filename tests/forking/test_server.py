from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forking.server import forked

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Return a function that starts a program, given as its source, with arguments and variables."""

    def start(source: str, *arguments: str | bytes, **variables: str) -> subprocess.Popen[str]:
        (tmp_path / "program.py").write_text(f"import atexit, os, signal, sys\n{source}", "utf-8")
        return subprocess.Popen(
            [*forked("program"), *arguments],
            cwd=tmp_path,
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    return start


def test_a_process_has_the_arguments_variables_folder_and_files_of_the_command(start: Start, tmp_path: Path) -> None:
    source = """
print(__name__, [os.fsencode(word) for word in sys.argv[1:]], os.environ["NAME"], os.getcwd(), sys.stdin.read())
print("a", file=sys.stderr)
"""
    process = start(source, "", b"\xff", "x y", NAME="é")
    assert process.communicate("said") == (f"__main__ [b'', b'\\xff', b'x y'] é {tmp_path} said\n", "a\n")


@pytest.mark.parametrize(
    ("source", "code", "complaint"),
    [
        ("", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no')", 1, "no"),
        ("raise ValueError('no')", 1, "ValueError: no"),
        ("os._exit(4)", 4, ""),
        ("os.kill(os.getpid(), signal.SIGABRT)", -signal.SIGABRT, ""),
    ],
)
def test_the_command_ends_as_the_process_does(start: Start, source: str, code: int, complaint: str) -> None:
    process = start(source)
    assert (process.communicate()[1].splitlines() or [""])[-1] == complaint
    assert process.returncode == code


def test_output_is_written_and_functions_for_the_exit_are_called_at_the_end(start: Start) -> None:
    process = start("atexit.register(print, 'last')\nprint('first')")
    assert process.communicate() == ("first\nlast\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_passed_on(start: Start, number: signal.Signals) -> None:
    # signal.pause() waits for ever if the signal arrives just before it.
    process = start(
        "signal.pthread_sigmask(signal.SIG_BLOCK, (2, 15))\nprint('ready', flush=True)\n"
        "sys.exit(signal.sigwait((2, 15)))"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate()
    assert process.returncode == number


def test_the_process_of_a_killed_command_is_dead_before_another_starts(start: Start) -> None:
    source = """
import fcntl
file = open("locked", "w")
fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.read()
"""
    first = start(source)
    assert first.stdout is not None
    assert first.stdout.readline() == "locked\n"
    first.kill()
    first.communicate()
    assert start(source).communicate("") == ("locked\n", "")
