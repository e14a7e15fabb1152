"""The package `amqp-broker` of the package index has a module of our package's name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import amqp_broker
import amqp_minibroker


def run(*folders: Path | str) -> subprocess.CompletedProcess[str]:
    """Run the program where these folders come first on the path."""
    script = Path(amqp_minibroker.__file__)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = (sys.executable, "-P", "-c", script.read_text("utf-8"), "--version")
    return subprocess.run(command, env=variables, capture_output=True, encoding="utf-8", timeout=30, check=False)


@pytest.mark.parametrize("source", ["class Client: pass\n", 'print "Requested"\n'], ids=["Python 3", "Python 2"])
def test_a_package_of_the_same_name_is_reported_in_a_sentence(tmp_path: Path, source: str) -> None:
    (tmp_path / "amqp_broker").mkdir()
    (tmp_path / "amqp_broker" / "__init__.py").write_text(source, "utf-8")
    done = run(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (78, "", f"{amqp_minibroker.SHADOWED}\n")


def test_the_programs_run_with_the_package_itself() -> None:
    done = run(Path(amqp_broker.__file__).parents[1])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("amqp-broker, version ")
