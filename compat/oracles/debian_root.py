"""Root folders of Debian releases with some packages, from the mirror that this machine's apt uses.

`python3 -m compat.oracles.debian_root RELEASE FOLDER PACKAGE...` creates one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# The kernel ends the command with the thread that has started it, and mounts and processes of the command with it.
ALONE = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child")
TARGETS = ("apt-get", "indextargets", "--format", "$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)")


class Unavailable(Exception):
    """This machine cannot provide it; the text is the reason."""


def create(release: str, folder: Path, packages: Sequence[str]) -> None:
    """Create the root folder of a release with these packages, unless it exists. Raise Unavailable.

    It appears once it is complete. Other processes that want the same folder wait.
    """
    if folder.exists():
        return
    if os.geteuid() != 0:
        raise Unavailable("only root can install another release of Debian")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _create(release, folder, packages)


def _create(release: str, folder: Path, packages: Sequence[str]) -> None:
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    # Twice as fast as debootstrap. As with it, a mirror may be of an earlier month.
    options = ["--variant=minbase", "--aptopt=Acquire::Check-Valid-Until false", f"--include={','.join(packages)}"]
    try:
        _run([*ALONE, "mmdebstrap", *options, release, str(new), mirror()])
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def mirror() -> str:
    """Return the address of Debian's packages that apt is configured with. Raise Unavailable."""
    for line in _run([*TARGETS, "Created-By: Packages"]).splitlines():
        origin, component, codename, address = (*line.split(" "), "", "", "", "")[:4]
        # Updates have their own release, and security updates their own mirror.
        if (origin, component) == ("Debian", "main") and "-" not in codename:
            return address.rstrip("/")
    raise Unavailable("apt has no mirror of Debian")


def _run(command: Sequence[str]) -> str:
    """Return the output of a command. Raise Unavailable with its error."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
        )
    except OSError as error:
        raise Unavailable(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode:
        raise Unavailable(error_in(done.stderr) or f"{command[0]} ended with {done.returncode}")
    return done.stdout


def error_in(output: str) -> str:
    """Return, as a part of a sentence, the first error of apt, or the last line of other output."""
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E: ")] or lines[-1:]
    return errors[0].removeprefix("E: ") if errors else ""


def main(arguments: Sequence[str]) -> int:
    release, folder, *packages = arguments
    try:
        create(release, Path(folder), packages)
    except Unavailable as reason:
        print(reason, file=sys.stderr)
        return 69
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
