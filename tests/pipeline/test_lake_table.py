"""Tables without Spark: snapshots, columns of other versions, kills and an object store."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler

from amqp_broker.pipeline.event_rows import ARROW, FIELDS, Field
from amqp_broker.pipeline.lake import tables_of
from amqp_broker.pipeline.lake_table import (
    FILES_MAX,
    VERSION,
    VERSION_PROPERTY,
    DataFile,
    LakeRefused,
    LakeTable,
    Owner,
    crowded,
    storage_options,
)
from tests.pipeline import delta_log
from tests.pipeline.generated import START_US, Event, append

DAY_US = 86_400_000_000


def events(offsets: range, day: int = 0) -> list[Event]:
    return [{"time_us": START_US + day * DAY_US, "trace_queue": "t", "trace_offset": offset} for offset in offsets]


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    made = LakeTable(str(tmp_path / "events"), FIELDS)
    assert (made.exists(), made.files()) == (False, [])
    made.create()
    made.create()
    return made


def offsets_of(table: LakeTable) -> list[int]:
    """Return the offsets in the newest snapshot, which deltalake and a reader by hand must agree on."""
    found = pa.table(DeltaTable(table.place).to_pyarrow_table(columns=["trace_offset"]))
    mine = sorted(found["trace_offset"].to_pylist())
    assert mine == delta_log.offsets(Path(table.place))
    return mine


def test_a_batch_is_recognized_and_its_rows_can_be_discarded(table: LakeTable) -> None:
    append(table, events(range(5)), "job", 0)
    append(table, [*events(range(5, 7)), *events(range(7, 9), day=1)], "job", 1)
    append(table, events(range(1)), "other", 1)
    assert (table.last_batch("job"), table.last_batch("other"), table.last_batch("none")) == (1, 1, None)
    assert [(file.date, file.rows) for file in table.files()][1:] == [
        ("2026-09-21", 2),
        ("2026-09-22", 2),
        ("2026-09-21", 1),
    ]
    table.discard("job", 1)
    table.discard("job", 1)
    assert offsets_of(table) == [0, *range(5)]
    assert table.last_writer() == "the generator"


def test_of_two_processes_with_one_batch_one_is_refused(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    behind = table.opened()
    append(table, events(range(5)), "job", 0)
    monkeypatch.setattr(LakeTable, "opened", lambda self: behind)
    with pytest.raises(LakeRefused, match=r"^the generator writes to this lake from the same checkpoint$"):
        append(LakeTable(table.place, FIELDS), events(range(5)), "job", 0)
    monkeypatch.undo()
    assert offsets_of(table) == list(range(5))


def test_a_reader_that_planned_before_a_compaction_finishes(table: LakeTable) -> None:
    for batch in range(FILES_MAX):
        append(table, events(range(batch, batch + 1)), "job", batch)
    assert table.compact(only_crowded=True) == 0
    append(table, events(range(FILES_MAX, FILES_MAX + 1)), "job", FILES_MAX)
    planned = delta_log.files(Path(table.place))
    assert table.compact(only_crowded=True) == FILES_MAX + 1
    assert len(table.files()) == 1
    assert table.vacuum() == 0
    assert all(file.exists() for file in planned)
    assert offsets_of(table) == list(range(FILES_MAX + 1))
    # A killed process has left a file without a commit.
    lost = Path(table.place, "job-99-0", "date=2026-09-21", "part-0.parquet")
    lost.parent.mkdir(parents=True)
    lost.write_bytes(b"half of a")
    assert table.vacuum(0) == FILES_MAX + 2
    assert not any(file.exists() for file in [*planned, lost.parent.parent])
    assert offsets_of(table) == list(range(FILES_MAX + 1))
    assert table.compact() == 0


def test_a_newer_program_adds_columns_and_an_older_one_is_refused(
    table: LakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(table, events(range(2)), "job", 0)
    monkeypatch.setattr("amqp_broker.pipeline.lake_table.VERSION", VERSION + 1)
    newer = LakeTable(table.place, [*FIELDS, Field("weight", "int", "")])
    newer.create()
    newer.create()
    monkeypatch.undo()
    problem = f"has version {VERSION + 1} of its columns, and this amqp-broker knows those up to {VERSION}"
    with pytest.raises(LakeRefused, match=problem):
        table.files()
    found = DeltaTable(table.place)
    assert found.metadata().configuration[VERSION_PROPERTY] == str(VERSION + 1)
    assert found.to_pyarrow_table()["weight"].to_pylist() == [None, None]


def test_a_table_of_others_is_refused(tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path), pa.schema([("x", pa.int64())]))
    with pytest.raises(LakeRefused, match="was not made by an archive"):
        LakeTable(str(tmp_path), FIELDS).files()


def test_a_queue_has_one_archive(table: LakeTable) -> None:
    table.claim("trace", Owner("nightly", "1"))
    table.claim("trace", Owner("nightly", "1"))
    table.claim("other", Owner("mine", "2"))
    with pytest.raises(LakeRefused, match=r"^'trace' is archived in '.*' by the job 'nightly': a second archive would"):
        table.claim("trace", Owner("mine", "2"))
    with pytest.raises(LakeRefused, match="by the job 'nightly' from another checkpoint"):
        table.claim("trace", Owner("nightly", "3"))
    assert table.owner("trace") == Owner("nightly", "1")


def test_a_date_is_crowded_by_files_below_half_the_target() -> None:
    small = [DataFile("a", "2026-11-21", 49, 1)] * (FILES_MAX + 1)
    assert crowded(small, 100) == ["2026-11-21"]
    assert crowded(small[1:], 100) == []
    assert crowded([file._replace(size_bytes=50) for file in small], 100) == []
    assert crowded([*small, *[file._replace(date="2026-11-20") for file in small[1:]]], 100) == ["2026-11-21"]


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {}),
        (
            {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"},
            {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"},
        ),
        ({"fs.s3a.endpoint": "http://x:1"}, {"AWS_ENDPOINT_URL": "http://x:1", "AWS_ALLOW_HTTP": "true"}),
        ({"fs.s3a.endpoint": "x:1"}, {"AWS_ENDPOINT_URL": "https://x:1"}),
        (
            {"fs.s3a.endpoint": "x:1", "fs.s3a.connection.ssl.enabled": "false"},
            {"AWS_ENDPOINT_URL": "http://x:1", "AWS_ALLOW_HTTP": "true"},
        ),
    ],
)
def test_the_settings_of_s3a_are_those_of_the_table(settings: dict[str, str], options: dict[str, str]) -> None:
    assert storage_options(settings.get) == options


# Each batch has the offsets of its number; a line says what comes next.
WRITER = """
import sys
from tests.pipeline.test_lake_table import FIELDS, LakeTable, append, events
import amqp_broker.pipeline.lake_table as module
module.FILES_MAX = 3
table = LakeTable(sys.argv[1], FIELDS)
batch = (-1 if table.last_batch("job") is None else table.last_batch("job")) + 1
for batch in range(batch, batch + 100):
    print("append", flush=True)
    append(table, events(range(batch * 10, batch * 10 + 10)), "job", batch)
    print("compact", flush=True)
    table.compact(only_crowded=True)
    table.vacuum(is_full=False)
"""


def test_no_kill_doubles_or_loses_a_row(table: LakeTable) -> None:
    for lines in (1, 2, 7, 12):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, table.place], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        for _ in range(lines):
            assert writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        found = offsets_of(table)
        assert found == list(range(len(found)))
        assert len(found) == 10 * ((-1 if (last := table.last_batch("job")) is None else last) + 1)
    assert len(found) >= 100


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """Run a server like S3, and return the options for it."""
    pytest.importorskip("moto")
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    server = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        assert server.stderr is not None
        url = next(match[0] for line in server.stderr if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        yield {"fs.s3a.endpoint": url, "fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}
    finally:
        server.kill()
        server.wait()


def test_a_table_in_an_object_store(bucket: dict[str, str]) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{bucket['fs.s3a.endpoint']}/lake", method="PUT")).close()
    table = tables_of("s3a://lake/mine", bucket.get)["events"]
    assert table.files() == []
    table.create()
    store = pyarrow.fs.PyFileSystem(DeltaStorageHandler(table.place, table.options))
    rows = pa.Table.from_pylist(events(range(10)), ARROW)

    def add(batch: int) -> None:
        folder = table.new_folder("job", batch)
        with store.open_output_stream(f"{folder}/date=2026-09-21/part-0.parquet") as file:
            pq.write_table(rows, file)
        table.commit(folder, {"job": batch}, "an archive")

    add(0)
    behind, batch = table.opened(), 1
    add(batch)
    table.opened = lambda: behind  # type: ignore[method-assign]
    with pytest.raises(LakeRefused, match=r"^an archive writes to this lake"):
        add(batch)
    del table.opened
    planned = DeltaTable(table.place, storage_options=table.options).to_pyarrow_dataset()
    assert (table.compact(), len(table.files()), planned.count_rows()) == (2, 1, 20)
    assert table.vacuum(0) == 3
    assert DeltaTable(table.place, storage_options=table.options).to_pyarrow_table().num_rows == 20
