from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from amqp_broker.cli.progress import bar, showing_progress

SCRIPT = """
import time
from amqp_broker.cli import progress
progress.DELAY_S, progress.STEP_S = 0.0, 0.01
with progress.showing_progress("Working", 2) as advance:
    advance()
    time.sleep(0.2)
"""


@pytest.mark.parametrize(
    ("done", "count", "text"),
    [
        (1, 2, "[" + "#" * 15 + "." * 15 + "] 1/2"),
        (3, 2, "[" + "#" * 30 + "] 3/2"),
        (0, 0, "[" + "..#" + "." * 27 + "]"),
    ],
)
def test_a_bar_is_as_long_as_what_is_done(done: int, count: int, text: str) -> None:
    assert bar(done, count, 2) == text


def test_nobody_is_shown_a_bar_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with showing_progress("Working", 2) as advance:
        advance()
    assert capfd.readouterr() == ("", "")


def test_a_terminal_is_shown_a_bar_that_goes_away() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=theirs) as process:
        os.close(theirs)
        process.wait(10)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "\rWorking [###############" in shown
    assert shown.endswith("\r\x1b[K")
