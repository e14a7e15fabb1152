"""The format for traces reads streams and classic queues, also on workers without this package."""

from __future__ import annotations

import io
import zipfile

import pytest
from pyspark.sql.types import StructType

from amqp_broker.pipeline.trace_source import MODULES, TraceQueue, TraceSource, TraceStream
from pyspark_amqp.errors import OptionError
from pyspark_amqp.shipping import archive

QUEUE = {"url": "amqp://localhost", "queue": "trace"}


@pytest.mark.parametrize(("kind", "reader"), [("stream", TraceStream), ("classic", TraceQueue)])
def test_a_trace_is_read_from_a_stream_or_a_classic_queue(kind: str, reader: type[TraceStream | TraceQueue]) -> None:
    source = TraceSource({**QUEUE, "queueType": kind, "bodies": "false"}).streamReader(StructType())
    assert isinstance(source, reader)
    assert not source.with_bodies


@pytest.mark.parametrize(("text", "has_bodies"), [("True", True), ("FALSE", False)])
def test_bodies_is_a_boolean_in_any_case(text: str, has_bodies: bool) -> None:
    source = TraceSource({**QUEUE, "bodies": text}).streamReader(StructType())
    assert isinstance(source, TraceQueue)
    assert source.with_bodies is has_bodies


def test_bodies_that_are_no_boolean_are_refused() -> None:
    with pytest.raises(OptionError, match=r"bodies.*must be true or false, not 'yes'"):
        TraceSource({**QUEUE, "bodies": "yes"}).streamReader(StructType())


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(OptionError, match="nope"):
        TraceSource({**QUEUE, "nope": "1"}).streamReader(StructType())


def test_the_modules_of_the_format_are_sent_to_workers() -> None:
    with zipfile.ZipFile(io.BytesIO(archive(MODULES))) as packed:
        names = set(packed.namelist())
    assert {"amqp_broker/__init__.py", "amqp_broker/pipeline/trace_records.py", "pyspark_amqp/shipping.py"} <= names
