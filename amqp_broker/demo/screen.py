"""The demo as text: the live view, lines for plain output, the verdict, and the table of strategies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from amqp_broker.demo.figures import NOW, OVER, TO_COME

BAR_WIDTH: Final = 30
# Width of the text beside a bar.
TEXT_WIDTH: Final = 32
MARKS: Final = {OVER: "x", NOW: ">", TO_COME: "."}


def live(figures: Mapping[str, Any], width: int, height: int) -> list[str]:
    """Return the live view in at most `height` lines of `width` columns."""
    messages, window = figures["messages"], figures["window"]
    bar_width = max(0, min(BAR_WIDTH, width - TEXT_WIDTH))
    head = [
        f"{figures['strategy']}: {figures['sentence']}",
        f"confirmed   {bar(figures['confirmed'], messages, bar_width)}{figures['confirmed']} of {messages}",
        f"in flight   {bar(figures['in_flight'], window, bar_width)}{figures['in_flight']} of {window}"
        if window
        else f"in flight   {figures['in_flight']}, not waited for",
        f"latency     median {latency(figures['median_ms'])}, p99 {latency(figures['p99_ms'])}",
        f"retries     {retries(figures['retries'])}",
        f"connection  {figures['connection']}, connected {figures['connects']} times",
    ]
    plan = [f"{MARKS[event['state']]} the broker {event_line(event)}" for event in figures["plan"]]
    room = max(1, height - len(head))
    # In a low terminal, past and current events take precedence over future ones.
    struck = sum(event["state"] != TO_COME for event in figures["plan"])
    begin = max(0, min(struck - (room + 1) // 2, len(plan) - room))
    return [line[:width] for line in [*head, *plan[begin : begin + room]][:height]]


def event_line(event: Mapping[str, Any]) -> str:
    """Describe an event and its progress."""
    if event["state"] == TO_COME:
        return f"{event['sentence']}, before message {event['at']}"
    return event["sentence"] if event["times"] == 1 else f"{event['sentence']}: {event['hits']} of {event['times']}"


def new_lines(figures: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield a line for each change since the figures `before`, which is None at the beginning."""
    if before is None or before["strategy"] != figures["strategy"]:
        yield f"{figures['strategy']} {figures['sentence']}."
        before = None
    for index, event in enumerate(figures["plan"]):
        former = TO_COME if before is None else before["plan"][index]["state"]
        if former == TO_COME != event["state"]:
            yield f"  before message {event['at']}: the broker {event['sentence']}."
    former_connects = 0 if before is None else before["connects"]
    if figures["connects"] > max(1, former_connects):
        yield f"  connected again, with {figures['confirmed']} of {figures['messages']} confirmed."


def verdict(result: Mapping[str, Any]) -> list[str]:
    """Describe the result of a strategy: the queue, the losses with their reasons, and the promise."""
    name, missing = result["strategy"], result["messages"] - result["distinct"]
    lines = [
        f"{name}: {messages_of(result['messages'])}, published {result['sent']} times, "
        f"{result['confirmed']} confirmed; median {latency(result['median_ms'])}, p99 {latency(result['p99_ms'])}.",
        f"  In the queue: {result['distinct']} of them, and {result['duplicates']} duplicates.",
    ]
    if missing:
        reasons = ", ".join(f"{count} {reason}" for reason, count in result["lost"].items())
        lines.append(f"  Lost: {missing} ({reasons}).")
    lines += [f"  Wrong: {breach}." for breach in result["breaches"]]
    if not result["is_held"]:
        return [*lines, f"  Broken: {result['promise']}."]
    kept = "It had promised nothing about losses" if is_unpromised(result) else f"Held: {result['promise']}"
    return [*lines, f"  {kept}; what was confirmed is there."]


def is_unpromised(result: Mapping[str, Any]) -> bool:
    """Return whether a strategy has lost messages whose delivery it had not promised."""
    return bool(result["lost"]) and result["is_held"] and not result["promises_delivery"]


COLUMNS: Final = (
    ("strategy", "strategy"),
    ("took", "elapsed_ms"),
    ("sent", "sent"),
    ("confirmed", "confirmed"),
    ("retries", "retries"),
    ("in queue", "distinct"),
    ("duplicates", "duplicates"),
    ("lost", "lost"),
    ("median", "median_ms"),
    ("p99", "p99_ms"),
    ("promise", "kept"),
)


def table(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table that compares the strategies."""
    rows = [[title for title, _ in COLUMNS], *([cell(name, result) for _, name in COLUMNS] for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return [
        "  ".join(
            text.ljust(width) if column in (0, len(COLUMNS) - 1) else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def cell(name: str, result: Mapping[str, Any]) -> str:
    """Return the value of a column of the table."""
    if name == "kept":
        return "nothing" if is_unpromised(result) else "held" if result["is_held"] else "broken"
    value = result[name]
    if name == "elapsed_ms":
        return f"{value / 1000:.1f} s"
    if name.endswith("_ms"):
        return latency(value)
    if name == "lost":
        return str(sum(value.values()))
    return str(value)


def latency(value_ms: float | None) -> str:
    """Format a latency in ms."""
    if value_ms is None:
        return "-"
    return f"{value_ms:.1f} ms" if value_ms < 100 else f"{value_ms:.0f} ms"


def messages_of(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def retries(counts: Mapping[str, int]) -> str:
    """Format the number of repeated publishes and their reasons."""
    if not counts:
        return "none"
    return f"{sum(counts.values())}: {', '.join(f'{count} {reason}' for reason, count in counts.items())}"


def bar(count: int, whole: int, width: int) -> str:
    """Return a progress bar and a space; "" if the width is 0."""
    if not width:
        return ""
    full = width * min(count, whole) // whole
    return f"[{'#' * full}{'.' * (width - full)}] "
