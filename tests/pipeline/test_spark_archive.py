"""The progress of Spark's query; tests of the archive itself are in test_archive.py, for both engines."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from amqp_broker.pipeline.spark_archive import progress_of


@pytest.mark.parametrize(
    ("last", "progress"),
    [
        (None, None),
        ({"latestOffset": '{"a": 5, "b": 7}', "endOffset": {"a": 5, "b": 3}, "processedRowsPerSecond": 8}, (8.0, 4)),
        ({"latestOffset": None, "endOffset": '{"a": 5}'}, (0.0, 0)),
    ],
)
def test_progress_is_a_rate_and_the_offsets_to_be_read(last: Any, progress: Any) -> None:
    query = SimpleNamespace(lastProgress=None if last is None else {"sources": [last]})
    assert progress_of(cast("Any", query)) == progress
