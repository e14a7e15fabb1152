from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from amqp_broker.cli.progress_bar import Progress, bar, showing_progress

SCRIPT = """
import time
from amqp_broker.cli import progress_bar
progress_bar.DELAY_S, progress_bar.STEP_S = 0.0, 0.01
with progress_bar.showing_progress("Working", 2) as progress:
    progress.step()
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
def test_the_length_of_a_bar_is_the_share_of_steps_that_are_done(done: int, count: int, text: str) -> None:
    assert bar(done, count, 2) == text


def test_a_bar_is_shown_on_a_terminal_only(capfd: pytest.CaptureFixture[str]) -> None:
    with showing_progress("Working", 2) as progress:
        progress.step()
    assert capfd.readouterr() == ("", "")


def test_the_bar_on_a_terminal_is_removed_at_the_end() -> None:
    parent, child = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=child) as process:
        os.close(child)
        process.wait(10)
    shown = os.read(parent, 65536).decode()
    os.close(parent)
    assert "\rWorking [###############" in shown
    assert shown.endswith("\r\x1b[K")


def test_progress_counts_steps_or_moves_to_a_count() -> None:
    progress = Progress()
    progress.step(1024)
    progress.step()
    assert (progress.done, progress.total) == (2, 1024)
    progress.move_to(5, 10)
    assert (progress.done, progress.total) == (5, 10)
