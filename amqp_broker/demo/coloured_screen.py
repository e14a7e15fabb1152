"""The live view of the demo for terminals with colours and Unicode; `screen.py` has the view for others.

Everything is drawn from the figures of a run (`figures.py`), so the same figures give the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from amqp_broker.demo import screen
from amqp_broker.demo.figures import BUCKET_MS, NOW, OVER, TO_COME
from amqp_broker.demo.ledger import CONFIRMED, IN_FLIGHT, LOST, NOT_SENT, RETRIED

PLAN_MARKS: Final = {OVER: ("✓", "green"), NOW: ("▶", "bold yellow"), TO_COME: ("·", "dim")}
# The mark, style and name of each state of messages.
CELLS: Final = {
    CONFIRMED: ("✓", "green", "confirmed"),
    IN_FLIGHT: ("▶", "yellow", "in flight"),
    RETRIED: ("↻", "cyan", "confirmed after a retry"),
    LOST: ("✗", "bold red", "not confirmed"),
    NOT_SENT: ("·", "dim", "to come"),
}
LEVELS: Final = "▁▂▃▄▅▆▇█"
FAULT_MARK: Final = "▲"
LABEL_WIDTH: Final = 11
# Wider terminals have empty columns at the right.
WIDTH_MAX: Final = 120
# Columns beside the sparkline, for the highest rate.
RATE_WIDTH: Final = 8
GRID_ROWS_MAX: Final = 5
# The mark and style of a promise: kept, broken, or none.
MARKS: Final = {"held": ("✓", "green"), "broken": ("✗", "bold red"), "nothing": ("", "yellow")}
# Figures of a running strategy that its result has, too.
RUNNING: Final = frozenset({"elapsed_ms", "sent", "confirmed", "median_ms", "p99_ms"})


def live(figures: Mapping[str, Any], width: int, height: int) -> RenderableType:
    """Return the live view for a terminal of `width` columns and `height` rows; what does not fit is left out."""
    inner = max(10, min(width, WIDTH_MAX) - LABEL_WIDTH - 1)
    head = Text(no_wrap=True, overflow="ellipsis")
    head.append(figures["strategy"], "bold cyan").append(f" {figures['sentence']}")
    messages = grid(figures["grid"], inner)
    above: list[RenderableType] = [head, _numbers(figures, inner)]
    above += [_labelled({"messages": messages, "": legend()}, inner)]
    compared: list[RenderableType] = []
    if any(result["strategy"] != figures["strategy"] for result in figures["results"]):
        compared = [Text(), comparison(figures["results"], figures)]
    # The fixed lines, the marks of the messages and the comparison.
    used = 9 + len(messages.split()) + (len(screen.COLUMNS) + 1 if compared else 0)
    return Group(*above, *plan(figures["plan"], max(1, height - 1 - used)), *compared)


def _numbers(figures: Mapping[str, Any], width: int) -> Table:
    pulse = figures["pulse"]
    flight: RenderableType = f"{figures['in_flight']}, not waited for"
    if figures["window"]:
        flight = _bar(figures["in_flight"], figures["window"], "yellow")
    median, p99 = screen.latency(figures["median_ms"]), screen.latency(figures["p99_ms"])
    lines = {
        "confirmed": _bar(figures["confirmed"], figures["messages"], "green"),
        "in flight": flight,
        "confirms": sparkline(pulse, width),
        "faults": fault_marks(figures["plan"], len(pulse), width),
        "latency": f"median {median}, p99 {p99}",
        "retries": screen.retries(figures["retries"]),
        "connection": f"{figures['connection']}, connected {figures['connects']} times",
    }
    return _labelled(lines, width)


def _labelled(lines: Mapping[str, RenderableType], width: int) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=LABEL_WIDTH, style="dim", no_wrap=True)
    table.add_column(width=width, no_wrap=True)
    for label, line in lines.items():
        table.add_row(label, line)
    return table


def _bar(count: int, whole: int, style: str) -> RenderableType:
    both = Table.grid(padding=(0, 1, 0, 0))
    bar = ProgressBar(whole, min(count, whole), screen.BAR_WIDTH, complete_style=style, finished_style=style)
    both.add_row(bar, f"{count} of {whole}")
    return both


def _share(count: int, width: int) -> int:
    """Return how many of `count` things share a column, so that all fit into `width` columns."""
    return max(1, -(-count // width))


def sparkline(pulse: Sequence[int], width: int) -> Text:
    """Draw the confirms of each bucket of time; the number beside it is the highest rate per second."""
    room = max(1, width - RATE_WIDTH)
    share = _share(len(pulse), room)
    rates = [sum(pulse[at : at + share]) * 1000 / (BUCKET_MS * share) for at in range(0, len(pulse), share)]
    top = max(rates, default=0)
    drawn = "".join(LEVELS[round(rate / top * (len(LEVELS) - 1))] if rate else " " for rate in rates)
    return Text.assemble((drawn, "green"), f" {top:.0f}/s" if top else "", no_wrap=True)


def fault_marks(plan: Sequence[Mapping[str, Any]], buckets: int, width: int) -> Text:
    """Mark the columns of the sparkline in which faults began."""
    share = _share(buckets, max(1, width - RATE_WIDTH))
    begun = {int(event["began_ms"] // (BUCKET_MS * share)) for event in plan if event["began_ms"] is not None}
    drawn = "".join(FAULT_MARK if column in begun else " " for column in range(max(begun, default=-1) + 1))
    return Text(drawn, style="red", no_wrap=True, overflow="crop")


def grid(states: str, width: int) -> Text:
    """Draw the messages in order; each mark stands for one message, or for the worst state of a few."""
    share = _share(len(states), width * GRID_ROWS_MAX)
    text = Text(no_wrap=True)
    cells = [max(states[at : at + share]) for at in range(0, len(states), share)]
    for at, state in enumerate(cells):
        if at and at % width == 0:
            text.append("\n")
        mark, style, _ = CELLS[state]
        text.append(mark, style)
    return text


def legend() -> Text:
    """Explain the marks of the grid."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for mark, style, name in CELLS.values():
        text.append(mark, style)
        text.append(f" {name}  ", "dim")
    return text


def plan(events: Sequence[Mapping[str, Any]], rows: int) -> list[Text]:
    """Return a line for each fault of the plan; if they do not fit, those around the current one."""
    lines = []
    begun = sum(event["state"] != TO_COME for event in events)
    first = max(0, min(begun - (rows + 1) // 2, len(events) - rows))
    for event in events[first : first + rows]:
        mark, style = PLAN_MARKS[event["state"]]
        line = Text(no_wrap=True, overflow="ellipsis").append(mark, style)
        lines.append(line.append(f" the broker {screen.event_line(event)}", "" if event["state"] == OVER else style))
    return lines


def comparison(results: Sequence[Mapping[str, Any]], running: Mapping[str, Any] | None = None) -> Table:
    """Return the strategies side by side: the finished ones, and the one that is running."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("", style="dim", no_wrap=True)
    is_running = running is not None and all(one["strategy"] != running["strategy"] for one in results)
    for result in results:
        table.add_column(Text(result["strategy"], "bold cyan"), justify="right", no_wrap=True)
    if is_running and running is not None:
        table.add_column(Text(f"▶ {running['strategy']}", "bold yellow"), justify="right", no_wrap=True)
    for title, name in screen.COLUMNS[1:]:
        cells = [_cell(name, result) for result in results]
        if is_running and running is not None:
            cells.append(_cell(name, running) if name in RUNNING else Text("…", "dim"))
        table.add_row(title, *cells)
    return table


def _cell(name: str, result: Mapping[str, Any]) -> Text:
    shown = screen.cell(name, result)
    if name == "kept":
        mark, style = MARKS[shown]
        return Text(f"{mark} {shown}".strip(), style)
    return Text(shown, "red" if name == "lost" and shown != "0" else "")


def verdict(result: Mapping[str, Any]) -> Text:
    """Return the verdict of `screen.verdict` with a mark and a colour."""
    mark, style = MARKS[screen.cell("kept", result)]
    *lines, last = screen.verdict(result)
    return Text("\n").join([*map(Text, lines), Text(f"{mark} {last.strip()}".strip(), style)])
