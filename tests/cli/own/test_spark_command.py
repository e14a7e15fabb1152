"""Times, counts, and the reasons in Spark's errors."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.own.spark_command import JAVA_GONE, Moment, lake_errors, reason_of, text_of
from amqp_broker.pipeline.lake_table import LakeBusy, LakeRefused


def test_a_time_without_an_offset_is_utc() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    for text in ("2026-11-21T12:00", "2026-11-21T13:00:00+01:00", "2026-11-21 12:00Z"):
        assert Moment().convert(text, None, None) == noon
    with pytest.raises(click.BadParameter, match="'noon' is not a time"):
        Moment().convert("noon", None, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "[STREAM_FAILED] Ended\n  File x\npyspark_amqp.errors.OptionError: option 'queue': is needed\n at java",
            "option 'queue': is needed",
        ),
        ("\n[PATH_NOT_FOUND] Path does not exist: x.\nat y", "[PATH_NOT_FOUND] Path does not exist: x."),
        (
            "An error occurred while calling o1.load.\n: org.apache.Wrong: [NOT_FOUND] There is none.\n\tat java",
            "org.apache.Wrong: [NOT_FOUND] There is none.",
        ),
        ("", "Spark failed without a reason"),
    ],
)
def test_the_reason_is_found_among_sparks_lines(text: str, reason: str) -> None:
    assert reason_of(text) == reason


class Unanswered(Exception):
    """As py4j's errors that ask Java for their text, when there is no Java any more."""

    def __str__(self) -> str:
        raise ConnectionRefusedError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionRefusedError("Connection refused"), JAVA_GONE),
        (Unanswered(), JAVA_GONE),
        (RuntimeError("An error occurred while calling o68.stop"), JAVA_GONE),
        (RuntimeError("Answer from Java side is empty"), JAVA_GONE),
        (RuntimeError("An error occurred while calling o1.load.\n: java.lang.Wrong"), None),
        (RuntimeError("wrong"), None),
    ],
)
def test_the_end_of_java_is_the_reason_of_other_errors(error: Exception, text: str | None) -> None:
    assert text_of(error) == (text or str(error))


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (LakeBusy("mine"), 75, "mine"),
        (LakeRefused("mine"), 65, "mine"),
        (
            OSError("Generic S3 error\n  \x1b[31m↳\x1b[0m no such bucket"),
            74,
            "the lake cannot be read or written: Generic S3 error no such bucket",
        ),
    ],
)
def test_an_error_of_the_lake_is_a_sentence(error: Exception, code: int, text: str) -> None:
    with pytest.raises(CommandError) as caught, lake_errors():
        raise error
    assert (str(caught.value), caught.value.exit_code) == (text, code)
