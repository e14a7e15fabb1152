"""A checkpoint keeps the plan and the end of each batch, in the form of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqp_broker.pipeline.lake_files import files_at
from amqp_broker.pipeline.lake_table import LakeRefused
from amqp_broker.pipeline.query_checkpoint import KEPT, PlannedBatch, QueryCheckpoint


def opened(path: Path) -> QueryCheckpoint:
    return QueryCheckpoint(files_at(str(path), {}), "checkpoints/job")


def test_a_new_checkpoint_has_a_query_and_no_batch(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    assert (checkpoint.planned(), checkpoint.committed()) == (None, -1)
    assert opened(tmp_path).query == checkpoint.query != ""


def test_a_batch_is_planned_and_committed(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    first, second = PlannedBatch(0, {"trace": 5}, 1000), PlannedBatch(1, {"trace": 9}, 2000)
    checkpoint.plan(first)
    checkpoint.commit(0)
    checkpoint.plan(second)
    again = opened(tmp_path)
    assert (again.planned(), again.planned(0), again.planned(7), again.committed()) == (second, first, None, 0)


def test_old_batches_are_forgotten(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    for number in range(KEPT + 3):
        checkpoint.plan(PlannedBatch(number, {"trace": number}, 0))
        checkpoint.commit(number)
    assert (checkpoint.planned(2), checkpoint.planned(3)) == (None, PlannedBatch(3, {"trace": 3}, 0))
    assert len(list((tmp_path / "checkpoints" / "job" / "commits").iterdir())) == KEPT


@pytest.mark.parametrize("text", ["v2\n{}\n{}", 'v1\n{"batchTimestampMs":1}\n{"a":1}\n{"b":1}', "v1\n{}"])
def test_the_checkpoint_of_another_query_is_refused(tmp_path: Path, text: str) -> None:
    checkpoint = opened(tmp_path)
    (tmp_path / "checkpoints" / "job" / "offsets").mkdir()
    (tmp_path / "checkpoints" / "job" / "offsets" / "0").write_text(text, "utf-8")
    with pytest.raises(LakeRefused, match="the checkpoint 'checkpoints/job' is that of another query"):
        checkpoint.planned()
