from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amqp_broker.cli.own.command_report import NoReport, without_report
from tests.cli.program import program, run

# Two messages, of which one comes to no queue; then it ends with the code of its argument.
PUBLISH = """
import os, sys, pika
with pika.BlockingConnection(pika.URLParameters(os.environ["AMQP_URL"])) as connection:
    channel = connection.channel()
    channel.queue_declare("orders")
    for key in ("orders", "order"):
        channel.basic_publish("", key, b"order 1")
sys.exit(int(sys.argv[1]))
"""


def command(code: int) -> list[str]:
    return ["--", sys.executable, "-c", PUBLISH, str(code)]


def test_a_failed_command_leaves_a_page_and_the_next_run_removes_it(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "report.html"
    done = run("run", "--report", str(path), *command(3))
    assert (done.returncode, done.stderr) == (3, f"amqp-broker: a page about the failed command is in {path}.\n")
    page = path.read_text("utf-8")
    assert "The command ended with exit code 3." in page
    assert "No queue was bound with the key &#x27;order&#x27;: did you mean &#x27;orders&#x27;?" in page
    assert (run("run", f"--report={path}", *command(0)).returncode, path.exists()) == (0, False)


def test_the_page_names_the_signal_of_an_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert run("run", f"--report={path}", "--", "sh", "-c", "kill -9 $$").returncode == 137
    assert "The command ended with exit code 137, that of SIGKILL." in path.read_text("utf-8")


def test_the_page_has_all_vhosts(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    script = " ".join([*program(), "ctl", "-q", "add_vhost", "shop"]) + "; exit 1"
    done = run("run", "--report", str(path), "--", "sh", "-c", script)
    assert done.returncode == 1
    assert "Virtual host shop" in path.read_text("utf-8")


def test_a_broker_that_is_gone_leaves_a_page_without_messages(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    script = " ".join([*program(), "ctl", "-q", "stop"]) + "; exit 4"
    assert run("run", "--report", str(path), "--", "sh", "-c", script).returncode == 4
    assert "The broker did not answer on its control socket." in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--report", "a.html", "--compat", "4.3"], ("a.html", ["--compat", "4.3"])),
        (["--compat=4.3", "--report=a.html"], ("a.html", ["--compat=4.3"])),
        (["--log-level", "debug"], ("", ["--log-level", "debug"])),
    ],
)
def test_the_other_options_are_those_of_serve(
    options: list[str], expected: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert without_report(options) == expected


@pytest.mark.parametrize("options", [["--report"], ["--report="]])
def test_the_option_needs_a_file(options: list[str]) -> None:
    with pytest.raises(NoReport, match=r"^--report needs the name of a file, such as report\.html$"):
        without_report(options)


def test_a_file_that_cannot_be_written_is_an_error_before_the_command(tmp_path: Path) -> None:
    done = run("run", "--report", str(tmp_path), "--", "echo", "started")
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr == f"amqp-broker: cannot write {tmp_path}: it is a folder.\n"


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("notes", "utf-8")
    done = run("run", "--report", str(path), "--", "false")
    assert (done.returncode, path.read_text("utf-8")) == (64, "notes")
    assert done.stderr == f"amqp-broker: cannot write {path}: it exists, and is no report of an earlier run.\n"


def test_a_place_that_has_changed_at_the_end_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    done = run("run", "--report", str(path), "--", "sh", "-c", f"mkdir {path}; exit 5")
    assert (done.returncode, done.stderr) == (5, f"amqp-broker: cannot write {path}: Is a directory.\n")
