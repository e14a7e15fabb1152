"""The `go` command for tests: one at a time, as two would compile Go's standard library twice."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

MODULE = Path(__file__).parent
LOCK = MODULE.parents[1] / ".cache" / "go.lock"


def find_go() -> str | None:
    """Return the `go` command: from this environment, the path or its usual folder."""
    # The environment's is first: it is installed where the system's is too old.
    folders = [str(Path(sys.prefix) / "bin"), os.environ.get("PATH", ""), "/usr/local/go/bin"]
    return shutil.which("go", path=os.pathsep.join(folders))


def race_options() -> list[str]:
    """Return `-race` if there is a C compiler, which links the race detector."""
    return ["-race"] if shutil.which("gcc") else []


def run_go(*arguments: str, folder: Path = MODULE) -> str:
    """Run the go command in this folder and return its output; a failure shows the output."""
    go = find_go()
    assert go is not None
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run([go, *arguments], cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"go {' '.join(arguments)}:\n{done.stdout}{done.stderr}"
    return done.stdout
