from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys

import pytest

from amqp_broker.cli.shared.progress_bar import Progress, counted, lasted, showing_progress


def test_a_count_is_shown_with_its_time_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqp_broker.cli.shared.progress_bar.time.monotonic", lambda: 1000.0)
    assert counted(1000, "event", 998.0) == "1,000 events in 2.0 s (500/s)"
    assert counted(1, "message", 999.0) == "1 message in 1.0 s (1/s)"
    assert counted(0, "message", 1000.0) == "0 messages in 0.0 s (0/s)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (60, "1 min 0 s"),
        (119.7, "2 min 0 s"),
        (3725, "62 min 5 s"),
    ],
)
def test_a_time_is_shown_in_minutes_from_one_on(monkeypatch: pytest.MonkeyPatch, seconds: float, text: str) -> None:
    monkeypatch.setattr("amqp_broker.cli.shared.progress_bar.time.monotonic", lambda: 5000.0)
    assert lasted(5000.0 - seconds) == text


SCRIPT = """
import sys
from amqp_broker.cli.shared import progress_bar
progress_bar.DELAY_S, progress_bar.STEP_S = 0.0, 0.01
with progress_bar.showing_progress("Working", 2) as progress:
    progress.step()
    progress.note = "half"
    sys.stdin.readline()
"""


def test_a_bar_is_shown_on_a_terminal_only(capfd: pytest.CaptureFixture[str]) -> None:
    with showing_progress("Working", 2) as progress:
        progress.step()
    assert capfd.readouterr() == ("", "")


def shown(awaited: str, **variables: str) -> str:
    """Return the output of the script on a terminal; it ends once it has shown the awaited text."""
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **variables}
    output = b""
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=child, env=environment) as process:
        os.close(child)
        while awaited.encode() not in output:
            output += os.read(parent, 65536)
        process.communicate(b"\n", timeout=30)
    while select.select([parent], [], [], 0)[0]:
        try:
            output += os.read(parent, 65536)
        except OSError:  # Linux tells so that the other end is closed.
            break
    os.close(parent)
    return output.decode()


def test_the_bar_on_a_terminal_is_removed_at_the_end() -> None:
    output = shown("half")
    assert re.search(r"Working [^\r]*1/2[^\r]*half", output)
    # The last line is erased, and the cursor is shown again.
    assert output.rstrip().endswith("\x1b[2K")
    assert output.rfind("\x1b[?25h") > output.rfind("1/2")


def test_a_bar_has_no_colours_where_none_are_wanted() -> None:
    output = shown("1/2", NO_COLOR="1")
    assert "1/2" in output
    assert "\x1b[3" not in output


def test_a_dumb_terminal_has_no_bar() -> None:
    assert shown("", TERM="dumb") == ""


def test_progress_counts_steps_or_moves_to_a_count() -> None:
    progress = Progress()
    progress.step(1024)
    progress.step()
    assert (progress.done, progress.total) == (2, 1024)
    progress.move_to(5, 10)
    assert (progress.done, progress.total) == (5, 10)
