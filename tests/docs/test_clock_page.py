"""What docs/clock.md shows is run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.cli.program import TIMEOUT_S, Serving, run, serving

PAGE = Path(__file__).parents[2] / "docs" / "clock.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def run_program(broker: Serving) -> str:
    """The output of the page's program."""
    [program] = blocks("python")
    ports = broker.ports
    program = program.replace("= 5672, 15672", f"= {ports['amqp']}, {ports['management']}")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_retry_of_half_an_hour_takes_no_time(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "127.0.0.1") as broker:
        assert run_program(broker) == ""


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    [commands] = blocks("bash")
    with serving(tmp_path, "--host", "127.0.0.1") as broker:
        for line in commands.splitlines():
            words = line.partition("#")[0].split()[1:]
            assert run(*words, "--node", str(broker.port)).returncode == 0
