from __future__ import annotations

import base64
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.cli.program import MODULE, environment, program, run

QUICK = ("--rate", "0", "--messages", "60", "--window", "10")


def test_a_demo_without_a_terminal_prints_lines_and_the_proof(tmp_path: Path) -> None:
    done = run("demo", "confirms", *QUICK, "--seed", "5", TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0] == "async publishes continuously, a window ahead of the confirms."
    assert len([line for line in lines if line.startswith("  before message ")]) == 10
    assert lines[-1] == "  Held: at least once, and exactly once by message id; what was confirmed is there."
    # Nothing stays.
    assert list(tmp_path.iterdir()) == []


def test_all_strategies_are_compared_in_a_table() -> None:
    done = run("demo", "confirms", "--strategy", "all", "--rate", "0", "--messages", "12")
    assert done.returncode == 0
    table = done.stdout.rpartition("\n\n")[2].splitlines()
    assert [line.split()[0] for line in table] == ["strategy", "sync", "window", "async", "naive"]
    assert [line.split()[-1] for line in table[1:4]] == ["held"] * 3
    # The naive one may have lost messages.
    assert table[4].split()[-1] in {"held", "nothing"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--messages", "0"), "'--messages': 0 is not in the range"),
        (("--messages", "100001"), "'--messages': 100001 is not in the range"),
        (("--messages", "many"), "'--messages': 'many' is not a valid integer range"),
        (("--window", "0"), "'--window': 0 is not in the range"),
        (("--rate", "-1"), "'--rate': -1 is not in the range"),
        (("--seed", str(2**63)), "'--seed': 9223372036854775808 is not in the range"),
        (("--strategy", "hope"), "'--strategy': 'hope' is not one of"),
        (("--management-port", "65536"), "'--management-port': 65536 is not in the range"),
    ],
)
def test_an_invalid_option_is_reported_in_one_sentence(words: tuple[str, str], sentence: str) -> None:
    done = run("demo", "confirms", *words)
    assert done.returncode == 64
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_page_that_cannot_be_served_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("demo", "confirms", *QUICK, "--management-port", str(taken.getsockname()[1]))
    assert done.returncode == 69
    assert done.stderr.startswith("amqp-broker: ")
    assert done.stderr.count("\n") == 1


class OnTerminal:
    """The program on a terminal of some size."""

    def __init__(
        self,
        *words: str,
        columns: int = 100,
        rows: int = 40,
        term: str = "xterm",
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.output = ""
        # A read may end within a character.
        self._decoder = getincrementaldecoder("utf-8")()
        self._terminal, child = pty.openpty()
        given = {"TERM": term, "COLUMNS": str(columns), "LINES": str(rows), **variables}
        self.process = subprocess.Popen(
            [*(MODULE if "PYTHONIOENCODING" in variables else program()), "demo", "confirms", *words],
            env=environment(**given),
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
        )
        os.close(child)

    def until(self, condition: Callable[[], bool]) -> None:
        """Read on until the condition holds, or the program has ended."""
        deadline = time.monotonic() + 300
        while not condition():
            assert time.monotonic() < deadline, self.output
            if select.select([self._terminal], [], [], 0.05)[0]:
                try:
                    read = os.read(self._terminal, 65536)
                except OSError:  # Linux tells so that the other end is closed.
                    return
                self.output += self._decoder.decode(read)

    def end(self) -> int:
        self.until(lambda: False)
        os.close(self._terminal)
        return self.process.wait(30)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())


def test_rich_is_imported_for_a_terminal_only() -> None:
    script = "import sys, amqp_broker.cli.own.demo, amqp_broker.cli.shared.progress_bar; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "False\n"


# The characters and the terminal of the coloured view.
COLOURED = {"NO_COLOR": "", "PYTHONIOENCODING": "utf-8"}


def test_a_terminal_with_colours_shows_them_and_marks() -> None:
    terminal = OnTerminal("--strategy", "all", "--rate", "0", "--messages", "12", variables=COLOURED)
    assert terminal.end() == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.output)
    assert "messages    ✓" in text or "messages    ↻" in text
    assert "▲" in text
    assert "✓ the broker is killed" in text
    assert re.search(r"naive +▶ async", text) is None
    assert re.search(r"sync +window +async +naive\s", text.rpartition("Held")[2])
    assert "\x1b[32m✓" in terminal.output
    # The cursor is shown again.
    assert terminal.output.rfind("\x1b[?25h") > terminal.output.rfind("\x1b[?25l")


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"PYTHONIOENCODING": "ascii"}])
def test_a_terminal_without_colours_or_unicode_shows_a_screen_of_ascii(variables: dict[str, str]) -> None:
    terminal = OnTerminal(*QUICK, variables={**COLOURED, **variables})
    assert terminal.end() == 0
    assert terminal.output.isascii()
    assert "\x1b[16A\r" in terminal.output
    assert re.search(r"confirmed   \[#+\] 60 of 60", terminal.output)
    assert "Held: " in terminal.output.rpartition("\x1b[J")[2]


def test_the_screen_fits_into_the_terminal() -> None:
    terminal = OnTerminal(*QUICK, columns=30, rows=9, variables={"NO_COLOR": "1"})
    assert terminal.end() == 0
    *frames, _ = terminal.output.split("\x1b[J")
    for frame in frames:
        lines = re.sub(r"\x1b\[\d*[A-Z]", "", frame).replace("\r", "").splitlines()
        assert len(lines) <= 9
        assert max(map(len, lines)) < 30


@pytest.mark.parametrize(("words", "term"), [(("--plain",), "xterm"), ((), "dumb")])
def test_a_plain_or_dumb_terminal_gets_lines(words: tuple[str, ...], term: str) -> None:
    terminal = OnTerminal(*QUICK, *words, term=term)
    assert terminal.end() == 0
    assert "\x1b" not in terminal.output


@pytest.mark.parametrize("words", [(), ("--plain",)])
def test_ctrl_c_ends_the_demo_with_a_message_and_leaves_no_files(words: tuple[str, ...], tmp_path: Path) -> None:
    os.environ["TMPDIR"] = str(tmp_path)
    try:
        terminal = OnTerminal("--messages", "100000", *words)
    finally:
        del os.environ["TMPDIR"]
    terminal.until(lambda: "async" in terminal.output)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert re.search(r"Stopped with \d+ of 100000 confirmed\.", terminal.output)
    assert "Traceback" not in terminal.output
    assert list(tmp_path.iterdir()) == []


def test_sigterm_ends_the_demo_and_leaves_no_files(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*program(), "demo", "confirms", "--messages", "100000"],
        env=environment(TMPDIR=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("async")
        process.terminate()
        assert "Traceback" not in process.stdout.read()
    assert process.returncode == 143
    assert list(tmp_path.iterdir()) == []


def test_the_page_has_the_figures_and_stays_until_enter_is_pressed() -> None:
    terminal = OnTerminal(*QUICK, "--management-port", "0")
    terminal.until(lambda: "Press Enter to end the demo" in terminal.output)
    found = re.search(r"The page: (http://127\.0\.0\.1:\d+)/#/demo", terminal.output)
    assert found is not None
    request = urllib.request.Request(
        f"{found[1]}/_broker/demo", headers={"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
    )
    with urllib.request.urlopen(request) as answer:
        told = json.load(answer)["figures"]
    assert (told["confirmed"], told["connection"], told["connects"]) == (60, "closed", 4)
    assert [one["strategy"] for one in told["results"]] == ["async"]
    terminal.type("\n")
    assert terminal.end() == 0
