"""The way of the messages with an id: publishes, retries, dead letters, deliveries and their ends.

An id is that of a message (`message_id`), of a conversation (`correlation_id`), or of a task of Celery, which has it in
its headers as well, with the id of the task that began its chain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqp_broker.pipeline.report_tables import MESSAGE, Row

if TYPE_CHECKING:
    from amqp_broker.pipeline.report_tables import Report

# Places of an id in the JSON of the properties.
PLACES: Final = ("message_id", "correlation_id", "headers.id", "headers.root_id", "headers.parent_id")
# Messages and events of a way that are shown.
MESSAGES_MAX: Final = 200
EVENTS_MAX: Final = 1000

_IS_FOUND: Final = " OR ".join(f"get_json_object(properties, '$.{place}') = :id" for place in PLACES)
PUBLISHES: Final = f"""
SELECT DISTINCT {MESSAGE} FROM publishes WHERE message_number IS NOT NULL AND ({_IS_FOUND})
ORDER BY {MESSAGE} LIMIT {MESSAGES_MAX}
"""


def followed(report: Report, id_: str) -> list[Row]:
    """Return the events of all messages with an id and of their dead letters, in order.

    A firehose has no message numbers, and so no ways.
    """
    found = [_key(row) for row in report.select(PUBLISHES, {"id": id_})]
    known = set(found)
    while found and len(known) < MESSAGES_MAX:
        dead = report.select(
            f"SELECT {MESSAGE} FROM slice WHERE event = 'dead_letter' AND {_among(found, 'from_message_number')}"
        )
        found = [key for row in dead if (key := _key(row)) not in known]
        known.update(found)
    if not known:
        return []
    return report.select(
        f"SELECT * FROM slice WHERE {_among(sorted(known), 'message_number')} "
        f"ORDER BY time, trace_offset, trace_index LIMIT {EVENTS_MAX}"
    )


def _key(row: Row) -> tuple[str, int, int]:
    return row["node"], row["numbered_since_us"], row["message_number"]


def _among(keys: list[tuple[str, int, int]], column: str) -> str:
    """Return a condition for the messages with these keys. The time of a broker's run stands for its node."""
    return " OR ".join(f"(numbered_since_us = {since} AND {column} = {number})" for _, since, number in keys).join("()")
