"""Sentences of reports, about events of messages and about the clock.

For example, an event is "acknowledged by 127.0.0.1:40000, channel 1".
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

# Names of queues in one sentence.
NAMES_MAX: Final = 5
# Units of durations, and the least move of the clock that is named: a clock that stands moves back all the time.
UNITS: Final = (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
MOVED_MS_MIN: Final = 100

Row = dict[str, Any]


def sentence(event: Row) -> str:
    """Return what happened, by the row of an event."""
    describe = _WORDS.get(event["event"])
    return event["event"] if describe is None else describe(event)


def clock_words(clock: Row) -> str:
    """Return how far a clock was moved, and that its time is no real time; "" for one that was left alone."""
    is_moved = clock["moved_ms"] >= MOVED_MS_MIN
    if not is_moved and not clock["is_frozen"]:
        return ""
    now = datetime.fromtimestamp(clock["now_ms"] / 1000, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
    moved = f"the clock was moved by {duration(clock['moved_ms'])}" if is_moved else ""
    frozen = "the clock is frozen" if clock["is_frozen"] else ""
    words = " and ".join(filter(None, (moved, frozen)))
    return f"{words}; it was {now} UTC at the end, and times are by this clock"


def duration(ms: float) -> str:
    """Return a duration in its largest unit: `1.5 h`."""
    unit, length = next((one for one in UNITS if ms >= one[1]), UNITS[-1])
    return f"{round(ms / length, 2):g} {unit}"


def _publish(event: Row) -> str:
    begin = "published in a transaction to" if event["event"] == "tx_publish" else "published to"
    keys = ", ".join(f"'{key}'" for key in event["routing_keys"])
    to = f", which led to {_places(event)}"
    if event.get("kept_from_delay"):
        to = f"; fault {event['discarded_by']} kept it from a delay in '{event['kept_from_delay']}'"
    elif event.get("kept_from"):
        to = f"; fault {event['discarded_by']} kept it from {_named(event['kept_from'])}"
    elif event["event"] == "tx_publish":
        to = ""
    return f"{begin} {_exchange(event)} with the key {keys} by {_client(event)}{to}"


def _route(event: Row) -> str:
    return f"sent by {_exchange(event)}, which had kept it, to {_places(event)}"


def _confirm(event: Row) -> str:
    return "confirmed" if event["ack"] else "refused: its publisher got a nack"


def _return(event: Row) -> str:
    return f"returned to its publisher: {event['reply_code']} {event['reply_text']}"


def _deliver(event: Row) -> str:
    again = " again" if event["redelivered"] else ""
    who = f"consumer '{event['consumer_tag']}' of {_client(event)}" if event["consumer_tag"] else _client(event)
    return f"delivered{again} from '{event['queue']}' to {who}{', without ack' if event['no_ack'] else ''}"


def _nack(event: Row) -> str:
    return f"rejected by {_client(event)}" + (": back to the queue" if event["requeue"] else ", without requeue")


def _requeue(event: Row) -> str:
    return f"back in '{event['queue']}': {_reason(event)}"


def _dead_letter(event: Row) -> str:
    number = event["message_number"]
    to = f"{_exchange(event)}, which led to {_places(event)}"
    return f"dead-lettered from '{event['queue']}' ({_reason(event)}) as message {number} to {to}"


def _fault(event: Row) -> str:
    cut_off = ""
    if event.get("is_taken") is False:
        keys = ", ".join(f"'{key}'" for key in event["routing_keys"])
        cut_off = f", before the broker took the publish to {_exchange(event)} with the key {keys} by {_client(event)}"
    return f"fault {event['rule_id']}: {event['action']}{cut_off}"


def _exchange(event: Row) -> str:
    return f"exchange '{event['exchange']}'" if event["exchange"] else "the default exchange"


def _client(event: Row) -> str:
    if "connection" not in event:
        return "an unknown client"
    return f"{str(event['connection']).partition(' -> ')[0]}, channel {event.get('channel', '?')}"


def _places(event: Row) -> str:
    named = _named(event["routed_queues"])
    delayed = [f"a delay in '{name}'" for name in event.get("delayed_in", ())]
    dropped = [f"no queue, as a duplicate in '{name}'" for name in event.get("duplicate_in", ())]
    return ", ".join([*([named] if named else []), *delayed, *dropped]) or "no queue"


def _named(queues: Sequence[str]) -> str:
    more = len(queues) - NAMES_MAX
    return ", ".join([*(f"'{name}'" for name in queues[:NAMES_MAX]), *([f"{more} more"] if more > 0 else [])])


def _reason(event: Row) -> str:
    return str(event.get("reason", "unknown")).replace("_", " ")


_WORDS: Final = {
    "publish": _publish,
    "tx_publish": _publish,
    "rollback": lambda event: f"not committed: {_reason(event)}",
    "route": _route,
    "confirm": _confirm,
    "return": _return,
    "deliver": _deliver,
    "ack": lambda event: f"acknowledged by {_client(event)}",
    "nack": _nack,
    "requeue": _requeue,
    "delay": lambda event: f"not ready in '{event['queue']}' until its delay ends",
    "refuse": lambda event: f"refused by '{event['queue']}': {_reason(event)}",
    "expire": lambda event: f"expired in '{event['queue']}'",
    "drop": lambda event: f"dropped by '{event['queue'] or event['exchange']}': {_reason(event)}",
    "move": lambda event: f"moved from '{event['queue']}' to {_places(event)}",
    "dead_letter": _dead_letter,
    "fault": _fault,
}
