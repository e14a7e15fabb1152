"""The program that a page of docs/ shows, run against a broker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.cli.program import TIMEOUT_S, Serving


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def run_program(page: Path, broker: Serving) -> str:
    """The output of the page's one program, which is told the ports of this broker."""
    [program] = blocks(page, "python")
    ports = broker.ports
    program = program.replace("= 5672, 15672", f"= {ports['amqp']}, {ports['management']}")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
