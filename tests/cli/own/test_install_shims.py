from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from amqp_broker.cli.own.install_shims import first_lines, shims
from tests.cli.program import environment, run, serving


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert run("install-shims", str(tmp_path / "shims")).returncode == 0
    return tmp_path / "shims"


def test_every_shim_has_the_name_of_its_program(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [
        "rabbitmq-diagnostics",
        "rabbitmq-plugins",
        "rabbitmq-queues",
        "rabbitmq-server",
        "rabbitmq-streams",
        "rabbitmq-upgrade",
        "rabbitmqadmin",
        "rabbitmqctl",
    ]
    assert all(os.access(path, os.X_OK) for path in folder.iterdir())
    assert set(shims()) == {path.name for path in folder.iterdir()}


def test_shims_find_a_broker_from_any_folder(folder: Path, tmp_path: Path) -> None:
    with serving(tmp_path, "--node-name", "n@localhost", AMQP_BROKER_RUNTIME_DIR=str(tmp_path)):
        for program, words, output in (
            ("rabbitmq-diagnostics", ["-q", "ping"], "Ping succeeded\n"),
            ("rabbitmqctl", ["eval", "node()."], "n@localhost\n"),
            ("rabbitmqadmin", ["--version"], "rabbitmqadmin 4.2.1\n"),
            ("rabbitmq-plugins", ["version"], "4.2.1\n"),
        ):
            done = subprocess.run(
                [str(folder / program), *words],
                env=environment(AMQP_BROKER_RUNTIME_DIR=str(tmp_path)),
                cwd="/",
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            assert (done.stdout, done.stderr, done.returncode) == (output, "", 0)


def test_a_python_with_a_long_path_is_started_by_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "a folder" / "python"
    link.parent.mkdir()
    link.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(link))
    script = tmp_path / "script"
    script.write_text(first_lines("-IS") + "import sys\nprint(sys.argv[1:])\n", "utf-8")
    script.chmod(0o755)
    assert subprocess.run([str(script), "a b"], capture_output=True, encoding="utf-8", check=True).stdout == "['a b']\n"


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("install-shims", str(tmp_path / "file" / "shims"))
    assert done.returncode == os.EX_CANTCREAT
    assert done.stderr.startswith("amqp-broker: cannot write ")
