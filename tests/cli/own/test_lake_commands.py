"""The commands of a lake, as far as they need no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqp_broker.pipeline.lake import tables_of
from tests.cli.program import run
from tests.pipeline import delta_log
from tests.pipeline.generated import START_US, append


def test_compact_joins_files_and_deletes_those_of_killed_processes(tmp_path: Path) -> None:
    tables = tables_of(str(tmp_path))
    for table in tables.values():
        table.create()
    for batch in range(3):
        append(tables["events"], [{"time_us": START_US, "trace_offset": batch}], "job", batch)
    done = run("pipeline", "compact", "--lake", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"3 small files joined, 0 old files deleted in {tmp_path}.\n"
    assert len(delta_log.files(tmp_path / "events")) == 1
    assert delta_log.offsets(tmp_path / "events") == [0, 1, 2]


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("compact", "--lake", "none"), 66, "there is no lake at 'none'; `amqp-broker pipeline archive` creates one"),
        (("compact", "--lake", "full"), 66, "there is no lake at 'full'"),
        (("compact", "--lake", "full", "--keep-hours", "0"), 64, "Invalid value for '--keep-hours'"),
        (("compact", "--lake", "full", "--conf", "x"), 64, "--conf must be NAME=VALUE, not 'x'"),
        (("export", "--lake", "none", "--to", "new"), 66, "there is no lake at 'none'"),
        (("export", "--lake", "full", "--to", "full"), 73, "'full' is not empty; choose another --to"),
        (("export", "--lake", "full", "--to", "full/file"), 73, "'full/file' is not empty"),
        (("convert", "none", "new"), 66, "there is no lake at 'none'"),
    ],
)
def test_errors_come_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = run("pipeline", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert problem in done.stderr
