"""The programs of Kubernetes, in the user's cache. To build them takes four minutes of processor time, once.

`python3 -m tests.kubernetes.programs` prints the folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from compat.oracles.debian_root import Unavailable, error_in, mirror

SCRIPT = Path(__file__).with_name("build.sh")
# Another number for other programs: the folders of former numbers are not used again.
NUMBER = 1


def programs() -> Path:
    """Return the folder of the programs. Build them unless they exist. Raise Unavailable."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", f"amqp-broker-kubernetes-{NUMBER}")
    if folder.exists():
        return folder
    if os.geteuid() != 0:
        raise Unavailable("only root can run a cluster of Kubernetes")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _build(folder)
    return folder


def _build(folder: Path) -> None:
    new = folder.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    # The kernel ends the build with the thread that has started it.
    command = ["setpriv", "--pdeathsig", "KILL", "bash", str(SCRIPT), mirror(), str(new)]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
        )
        if done.returncode:
            raise Unavailable(error_in(done.stderr) or f"{SCRIPT.name} ended with {done.returncode}")
        new.rename(folder)
    except OSError as error:
        raise Unavailable(f"cannot build Kubernetes: {error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


if __name__ == "__main__":
    try:
        print(programs())
    except Unavailable as reason:
        sys.exit(str(reason))
