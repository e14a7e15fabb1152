"""The first and last offset of a stream, found by consuming: RabbitMQ's counts of streams are seconds old."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any, Final

from pyspark_amqp.amqp_connection import Connection
from pyspark_amqp.arrow_rows import stream_offset
from pyspark_amqp.delivery_run import Run
from pyspark_amqp.errors import BrokerError, OptionError

# Prefetch of a probe.
PREFETCH: Final = 1000
# Time for reading the last chunk of a stream; a later probe continues.
DRAIN_S: Final = 2.0
# Time for messages that exist but may be on a slow disk, and time for messages that may not exist.
SURE_TIMEOUT_S: Final = 10.0
EMPTY_TIMEOUT_S: Final = 0.5
# Time for a message after a given moment: without one, all messages of the stream are older, and are skipped.
MOMENT_TIMEOUT_S: Final = 3.0
# Time for a message that a tail lacks, before its stream counts as shorter than it was.
SHORTER_TIMEOUT_S: Final = 1.0


def begin(connection: Connection, queue: str, offset: Any, prefetch: int) -> int:
    """Consume a stream on a new channel, from an offset, a time, or "first", "last", "next".

    Return the broker's count of messages. RabbitMQ's is some seconds old, but a stream with that many messages ends
    after that offset. Raise OptionError.
    """
    connection.open_channel()
    count: int = connection.check_queue(queue).message_count
    try:
        connection.consume(queue, prefetch, {"x-stream-offset": offset})
    except BrokerError as error:
        if "x-stream-offset" in str(error):
            raise OptionError("queueType", f"queue '{queue}' is not a stream: {error}") from None
        raise
    return count


def offset_of(run: Run, queue: str) -> int:
    """Return the offset of the first delivery of a run of this queue. Raise OptionError if it has none."""
    offset = run.offset
    if offset is None:
        offset = stream_offset(run.header)
    if offset is None:
        raise OptionError("queueType", f"queue '{queue}' is not a stream: its messages have no offset")
    return offset


class StreamProbe:
    """Probes one stream over a given connection; `tail` is the end found last."""

    def __init__(self, queue: str, quiet_s: float) -> None:
        self.queue = queue
        self.quiet_s = quiet_s
        self.tail: int | None = None
        # The broker's last count of messages, and that at the last check whether the known tail exists.
        self._count = 0
        self._checked_count: int | None = None

    def first(self, connection: Connection) -> int:
        """Return the first offset; 0 if the stream is empty or does not deliver in time."""
        return self._first_from(connection, "first") or 0

    def at(self, connection: Connection, timestamp_ms: int) -> int:
        """Return the first offset of the chunk at or after this time; the tail if there is none."""
        tail = self.look(connection)
        moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
        found = self._first_from(connection, moment, MOMENT_TIMEOUT_S)
        return tail if found is None else found

    def _first_from(self, connection: Connection, offset: Any, timeout_s: float | None = None) -> int | None:
        count = begin(connection, self.queue, offset, 1)
        if timeout_s is None:
            timeout_s = SURE_TIMEOUT_S if count else EMPTY_TIMEOUT_S
        runs = connection.poll(timeout_s)
        connection.close_channel()
        return offset_of(runs[0], self.queue) if runs else None

    def look(self, connection: Connection, wait_s: float = 0.0, quiet_s: float = 0.0) -> int:
        """Return the offset after the last message; wait for a message after the known tail, up to a limit.

        The result is never beyond the end, except that of a stream that was declared again and already has more
        messages than before. It may lag behind a publisher that does not pause, and behind RabbitMQ's last messages if
        RabbitMQ pauses for longer than `quiet_s`.
        """
        quiet_s = max(quiet_s, self.quiet_s)
        known = self.tail
        if known is None or self._has_news(connection, known, max(wait_s, quiet_s)):
            return self._drain(connection, quiet_s)
        if self._may_be_shorter(known) and not self.reaches(connection, known):
            # The stream was deleted and declared again.
            self.tail = None
            return self._drain(connection, quiet_s)
        return known

    def _has_news(self, connection: Connection, known: int, wait_s: float) -> bool:
        """Return whether there is a message behind the known tail; one is enough to know it."""
        self._count = count = begin(connection, self.queue, known, 1)
        runs = connection.poll(SURE_TIMEOUT_S if known < count else wait_s)
        connection.close_channel()
        return bool(runs)

    def _may_be_shorter(self, known: int) -> bool:
        """Return whether the count is less than the known tail, and was not at the last call.

        After retention it is always less, and checks of an idle stream would deliver its last message again and again.
        """
        if self._count >= known or self._count == self._checked_count:
            return False
        self._checked_count = self._count
        return True

    def reaches(self, connection: Connection, end: int) -> bool:
        """Return whether the message before this offset, or a later one, exists; wait for it for a second."""
        if end == 0:
            return True
        found = self._first_from(connection, end - 1, SHORTER_TIMEOUT_S)
        return found is not None and found >= end - 1

    def _drain(self, connection: Connection, quiet_s: float) -> int:
        """Read the last chunk, whatever the number of messages before it."""
        self._count = count = begin(connection, self.queue, "last", PREFETCH)
        found = self.tail or 0
        timeout_s = SURE_TIMEOUT_S if found < count else max(EMPTY_TIMEOUT_S, quiet_s)
        deadline = time.monotonic() + DRAIN_S
        while (runs := connection.poll(timeout_s)) and time.monotonic() < deadline:
            found = max(found, offset_of(runs[-1], self.queue) + runs[-1].count)
            connection.ack(runs[-1].last_tag)
            timeout_s = SURE_TIMEOUT_S if found < count else quiet_s
        connection.close_channel()
        self.tail = found
        return found
