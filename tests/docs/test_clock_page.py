"""The examples of docs/clock.md work."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import run, serving
from tests.docs.programs import blocks, run_program

PAGE = Path(__file__).parents[2] / "docs" / "clock.md"


def test_the_program_of_the_page_runs_without_waiting(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "127.0.0.1") as broker:
        assert run_program(PAGE, broker) == ""


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    [commands] = blocks(PAGE, "bash")
    with serving(tmp_path, "--host", "127.0.0.1") as broker:
        for line in commands.splitlines():
            words = line.partition("#")[0].split()[1:]
            assert run(*words, "--node", str(broker.port)).returncode == 0
