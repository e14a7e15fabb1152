from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_amqp import java


def fake_java(folder: Path, version: str) -> Path:
    """Create a program that reports this version of Java and otherwise prints its arguments."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && {{ echo \'openjdk version "{version}"\' >&2; exit; }}\n'
        'for argument; do echo "$argument"; done\n',
        "utf-8",
    )
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore the variables that ensure_java sets."""
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("told", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", 0),
    ],
)
def test_the_version_of_java_is_read(told: str, major: int) -> None:
    assert java.major_version(told) == major


def test_a_recent_java_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java.ensure_java("local[2]")
    assert os.environ["JAVA_HOME"] == str(tmp_path)


def test_workers_use_this_interpreter_and_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "mine")
    java.ensure_java("local[2]")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == "mine"
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_the_workers_of_a_cluster_have_their_own_python_and_a_real_address_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin")
    java.ensure_java("spark://master.example.com:7077")
    assert not {"PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"} & os.environ.keys()
    assert os.environ["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/usr/bin"


def test_choices_of_spark_submit_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "12345")
    java.ensure_java("local[2]")
    assert "PYSPARK_DRIVER_PYTHON" not in os.environ


def test_a_missing_java_is_reported_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "packaged_java", lambda: None)
    with pytest.raises(java.NoJava, match=r"Java 17.*spark-jre"):
        java.ensure_java("local[2]")


def test_pips_java_is_used_if_the_machines_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    packaged = fake_java(tmp_path / "it's pip's", "17.0.9")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setattr(java, "packaged_java", lambda: packaged)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    java.ensure_java("local[2]")
    shim = Path(os.environ["JAVA_HOME"], "bin", "java")
    assert java.java_is_recent()
    told = subprocess.run(
        [str(shim), "-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", ""],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert told.stdout == "-Xmx1g\n-cp\na b\n\n"
    assert shim.is_relative_to(tmp_path / "cache")
