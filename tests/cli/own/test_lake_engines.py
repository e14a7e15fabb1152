"""The engine of a job is this process, unless Spark is asked for or the events are many."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqp_broker.cli.own import lake_engines
from amqp_broker.cli.own.lake_engines import asks_for_spark, is_large
from amqp_broker.pipeline.lake_slice import EVERYTHING
from tests.cli.program import run
from tests.pipeline import generated
from tests.pipeline.generated import START_US


@pytest.mark.parametrize(
    ("master", "conf", "is_spark"),
    [
        ("", (), False),
        ("local[2]", (), True),
        ("", ("spark.driver.memory=4g",), True),
        ("", ("spark.hadoop.fs.s3a.endpoint.region=eu-central-1",), False),
    ],
)
def test_settings_of_spark_ask_for_spark(master: str, conf: tuple[str, ...], is_spark: bool) -> None:
    assert asks_for_spark(master, conf) is is_spark


def test_many_events_are_work_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generated.write([{"time_us": START_US, "trace_offset": number} for number in range(3)], tmp_path)
    monkeypatch.setattr(lake_engines, "LOCAL_EVENTS_MAX", 3)
    assert not is_large(str(tmp_path), (), EVERYTHING)
    monkeypatch.setattr(lake_engines, "LOCAL_EVENTS_MAX", 2)
    assert is_large(str(tmp_path), (), EVERYTHING)
    # Without Java, this process does it.
    monkeypatch.setattr("amqp_broker.pipeline.spark_session.require_spark", no_spark)
    assert not is_large(str(tmp_path), (), EVERYTHING)


def no_spark(master: str) -> None:
    from amqp_broker.pipeline.spark_session import NoSpark

    raise NoSpark("there is none")


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("duckdb", ("report", "--lake", "lake", "--to", "new")),
        ("deltalake", ("export", "--lake", "lake", "--to", "new")),
        ("pyspark", ("archive", "--lake", "new")),
    ],
)
def test_a_missing_package_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(f"raise ModuleNotFoundError('no', name='{package}')", "utf-8")
    done = run("pipeline", *words, PYTHONPATH=f"{tmp_path}:{Path(lake_engines.__file__).parents[3]}")
    assert (done.returncode, done.stdout) == (69, "")
    assert f"'{package}' is not installed here: pip install 'amqp-minibroker[spark]'" in done.stderr
