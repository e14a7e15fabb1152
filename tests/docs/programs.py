"""Runs the example programs of pages against a broker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.cli.program import TIMEOUT_S, Serving


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def run_program(page: Path, broker: Serving) -> str:
    """Run the only program of a page with the ports of this broker, and return its output."""
    [program] = blocks(page, "python")
    ports = broker.ports
    program = program.replace("= 5672, 15672", f"= {ports['amqp']}, {ports['management']}")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
