"""A demo as text: lines of a terminal of some size, lines one after the other, and what it came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from amqp_broker.demo.figures import NOW, OVER, TO_COME

BAR_WIDTH: Final = 30
# Of what stands beside a bar.
TEXT_WIDTH: Final = 32
MARKS: Final = {OVER: "x", NOW: ">", TO_COME: "."}


def live(told: Mapping[str, Any], width: int, height: int) -> list[str]:
    """All of it at a glance, in at most `height` lines of `width` columns."""
    messages, window = told["messages"], told["window"]
    bar_width = max(0, min(BAR_WIDTH, width - TEXT_WIDTH))
    head = [
        f"{told['strategy']}: {told['sentence']}",
        f"confirmed   {bar(told['confirmed'], messages, bar_width)}{told['confirmed']} of {messages}",
        f"in flight   {bar(told['in_flight'], window, bar_width)}{told['in_flight']} of {window}"
        if window
        else f"in flight   {told['in_flight']}, which nobody looks at",
        f"latency     median {latency(told['median_ms'])}, p99 {latency(told['p99_ms'])}",
        f"retries     {retries(told['retries'])}",
        f"connection  {told['connection']}, connected {told['connects']} times",
    ]
    storm = [f"{MARKS[gust['state']]} the broker {gust_line(gust)}" for gust in told["storm"]]
    room = max(1, height - len(head))
    # Where there is no room for all, what comes is told less than what is there.
    struck = sum(gust["state"] != TO_COME for gust in told["storm"])
    begin = max(0, min(struck - (room + 1) // 2, len(storm) - room))
    return [line[:width] for line in [*head, *storm[begin : begin + room]][:height]]


def gust_line(gust: Mapping[str, Any]) -> str:
    """One thing that the broker does wrong, and how far that is."""
    if gust["state"] == TO_COME:
        return f"{gust['sentence']}, at message {gust['at']}"
    return gust["sentence"] if gust["times"] == 1 else f"{gust['sentence']}: {gust['hits']} of {gust['times']}"


def new_lines(told: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[str]:
    """What has begun or ended since the figures were others, a line each; `before` is None at the beginning."""
    if before is None or before["strategy"] != told["strategy"]:
        yield f"{told['strategy']} {told['sentence']}."
        before = None
    for index, gust in enumerate(told["storm"]):
        former = TO_COME if before is None else before["storm"][index]["state"]
        if former == TO_COME != gust["state"]:
            yield f"  message {gust['at']}: the broker {gust['sentence']}."
    former_connects = 0 if before is None else before["connects"]
    if told["connects"] > max(1, former_connects):
        yield f"  connected again, with {told['confirmed']} of {told['messages']} confirmed."


def verdict(result: Mapping[str, Any]) -> list[str]:
    """What a strategy came to: what is in the queue, what is lost and why, and whether that is as promised."""
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
    if result["is_held"]:
        return [*lines, f"  Held: {result['promise']}; what was confirmed is there."]
    return [*lines, f"  Broken: {result['promise']}."]


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
    ("promise", "is_held"),
)


def table(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The strategies beside each other."""
    rows = [[title for title, _ in COLUMNS], *([cell(name, result[name]) for _, name in COLUMNS] for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return [
        "  ".join(
            text.ljust(width) if column in (0, len(COLUMNS) - 1) else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def cell(name: str, value: Any) -> str:
    if name == "elapsed_ms":
        return f"{value / 1000:.1f} s"
    if name.endswith("_ms"):
        return latency(value)
    if name == "lost":
        return str(sum(value.values()))
    if name == "is_held":
        return "held" if value else "broken"
    return str(value)


def latency(value_ms: float | None) -> str:
    """A time as people read it."""
    if value_ms is None:
        return "-"
    return f"{value_ms:.1f} ms" if value_ms < 100 else f"{value_ms:.0f} ms"


def messages_of(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def retries(counts: Mapping[str, int]) -> str:
    """How many messages were published again, and why."""
    if not counts:
        return "none"
    return f"{sum(counts.values())}: {', '.join(f'{count} {reason}' for reason, count in counts.items())}"


def bar(count: int, whole: int, width: int) -> str:
    """How much of a whole that is, and a space; nothing where there is no room for it."""
    if not width:
        return ""
    full = width * min(count, whole) // whole
    return f"[{'#' * full}{'.' * (width - full)}] "
