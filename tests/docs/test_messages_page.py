"""The examples of docs/messages.md work."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import run, serving
from tests.docs.programs import blocks, run_program

PAGE = Path(__file__).parents[2] / "docs" / "messages.md"


def test_the_program_of_the_page_prints_the_shown_output(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "127.0.0.1") as broker:
        assert [run_program(PAGE, broker)] == blocks(PAGE, "text")


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "127.0.0.1", "--event-log") as broker:
        done = run("messages", "--queue", "orders", "--body-json", '{"id": 42}', "--node", str(broker.port))
        assert (done.returncode, done.stdout) == (0, "")
