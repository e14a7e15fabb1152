"""A picture of a message's way: lanes for clients and queues, and an arrow for each event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final, NamedTuple

from amqp_broker.pipeline.plots import shown
from amqp_broker.pipeline.report_tables import Row

LANE_PX: Final = 170
ROW_PX: Final = 26
LEFT_PX: Final = 110
TOP_PX: Final = 34
# Characters of a name above its lane.
NAME_CHARACTERS: Final = 24


class Arrow(NamedTuple):
    """An event between two lanes, or at one; `kind` is its class in report.css."""

    start: str
    end: str
    text: str
    kind: str


def picture(events: list[Row]) -> str:
    """Return events in their order as SVG."""
    drawn = [(event, list(_arrows(event))) for event in events]
    lanes: dict[str, int] = {}
    for _, arrows in drawn:
        for arrow in arrows:
            for name in (arrow.start, arrow.end):
                lanes.setdefault(name, len(lanes))
    rows = [(event, arrow) for event, arrows in drawn for arrow in arrows]
    width, height = LEFT_PX + LANE_PX * len(lanes), TOP_PX + ROW_PX * (len(rows) + 1)
    numbers = {key: place for place, key in enumerate(dict.fromkeys(map(_key, events)), 1)}
    parts = [
        f'<div class="table"><svg class="way" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img" aria-label="The way of the messages"><defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"/></marker></defs>'
    ]
    for name, place in lanes.items():
        at = LEFT_PX + LANE_PX * place + LANE_PX // 2
        parts.append(f'<line class="lane" x1="{at}" x2="{at}" y1="{TOP_PX}" y2="{height}"/>')
        parts.append(f'<text class="head" x="{at}" y="18"><title>{escape(name)}</title>{escape(_short(name))}</text>')
    first = events[0]["time"] if events else None
    for place, (event, arrow) in enumerate(rows):
        y = TOP_PX + ROW_PX * (place + 1)
        since_ms = (event["time"] - first).total_seconds() * 1000
        label = f"{shown(since_ms)} ms, #{numbers[_key(event)]}"
        parts.append(f'<text class="at" x="4" y="{y + 4}">{escape(label)}</text>')
        parts.append(_drawn(arrow, lanes, y))
    return "".join((*parts, "</svg></div>"))


def _drawn(arrow: Arrow, lanes: dict[str, int], y: int) -> str:
    """Return an arrow with its text, or a dot if it stays in its lane."""
    start, end = (LEFT_PX + LANE_PX * lanes[name] + LANE_PX // 2 for name in (arrow.start, arrow.end))
    text = f'<text class="{arrow.kind}" x="{{}}" y="{y - 5}">{escape(arrow.text)}</text>'
    if start == end:
        return f'<circle class="{arrow.kind}" cx="{start}" cy="{y}" r="4"/>' + text.format(start)
    line = f'<line class="{arrow.kind}" x1="{start}" x2="{end}" y1="{y}" y2="{y}" marker-end="url(#tip)"/>'
    return line + text.format((start + end) // 2)


def _arrows(event: Row) -> Iterator[Arrow]:
    kind = event["event"]
    queue, client = f"queue {event['queue']}", event["connection_name"] or event["connection"] or "client"
    targets = [f"queue {name}" for name in event["routed_queues"] or ()]
    if kind == "publish":
        text = f"publish {event['exchange'] or '(default)'} {event['routing_key'] or ''}"
        yield from _to_each(client, targets, text)
    elif kind == "dead_letter":
        yield from _to_each(queue, targets, f"dead letter: {event['reason']}")
    elif kind == "deliver":
        yield Arrow(queue, client, "redelivery" if event["redelivered"] else "delivery", "way")
    elif kind == "ack":
        yield Arrow(client, queue, "ack", "good")
    elif kind == "nack":
        yield Arrow(client, queue, "requeue" if event["requeue"] else "reject", "bad")
    elif kind == "confirm":
        yield Arrow(client, client, "confirmed" if event["is_ack"] else "nacked", "good" if event["is_ack"] else "bad")
    elif kind == "return":
        yield Arrow(client, client, f"returned: {event['reply_text']}", "bad")
    else:
        yield Arrow(queue, queue, "expired" if kind == "expire" else f"dropped: {event['reason']}", "bad")


def _to_each(start: str, targets: list[str], text: str) -> Iterable[Arrow]:
    if not targets:
        return [Arrow(start, start, f"{text}: to no queue", "bad")]
    return [Arrow(start, target, text, "way") for target in targets]


def _key(event: Row) -> tuple[int, int]:
    return event["numbered_since_us"], event["message_number"]


def _short(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}…"
