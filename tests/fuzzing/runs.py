"""Runs of the fuzzer that is guided by coverage, each in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.fuzzing import corpus
from tests.fuzzing.target import load

ROOT = Path(__file__).parents[2]
# An input that takes longer counts as a failure.
INPUT_SECONDS_MAX = 25
MEMORY_MB_MAX = 3000


class Run(NamedTuple):
    """The end of a run: what it printed, the inputs that it kept, and the input that failed, if one did."""

    is_failed: bool
    output: str
    executions: int
    found: list[bytes]
    failed: bytes | None


def run(name: str, executions: int, seed: int, *, planted: str = "", is_shown: bool = False) -> Run:
    """Fuzz a target from its corpus; with `planted`, a fault in the code under test."""
    with tempfile.TemporaryDirectory(prefix="fuzzing-") as place:
        folder = Path(place, "inputs")
        folder.mkdir()
        for number, data in enumerate(corpus.read(name) or load(name).seeds()):
            (folder / f"{number:05}").write_bytes(data)
        command = [sys.executable, "-m", "tests.fuzzing.guided", name, str(folder)]
        command += [f"planted={planted}"] if planted else []
        command += [f"-runs={executions}", f"-seed={seed}", f"-timeout={INPUT_SECONDS_MAX}"]
        command += [f"-rss_limit_mb={MEMORY_MB_MAX}", f"-artifact_prefix={place}/", "-print_final_stats=1"]
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
        ) as process:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if is_shown and re.search(r"\t(pulse|INITED|DONE)", line):
                    print(line, end="", flush=True)
        output = "".join(lines)
        failures = [Path(place, "failure"), *Path(place).glob("timeout-*"), *Path(place).glob("oom-*")]
        failed = next((path.read_bytes() for path in failures if path.exists()), None)
        executed = re.search(r"number_of_executed_units: (\d+)", output)
        found = [path.read_bytes() for path in sorted(folder.iterdir())]
        return Run(process.returncode != 0, output, int(executed[1]) if executed else 0, found, failed)
