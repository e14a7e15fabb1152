"""The rates and the CPU time per message of each broker as bars."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from bench.benchmarks import ROWS
from bench.row import REAL, Sample

COLOURS: Final = ("#0b6e99", "#e0823d", "#8a8a8a", "#5a9e6f", "#b3589a")
ROW_INCHES: Final = 0.5


def draw(medians: Mapping[str, Mapping[str, Sample]], path: Path) -> None:
    """Write `path`.svg and `path`.png: a pair of bars for each row of real messages."""
    rows = [row for row in ROWS if row.group == REAL and row.name in medians]
    names = list(dict.fromkeys(broker for row in rows for broker in medians[row.name]))
    figure = Figure(figsize=(14, 1.5 + ROW_INCHES * len(rows)), layout="constrained")
    rates, costs = figure.subplots(1, 2, sharey=True)
    height = 0.8 / max(len(names), 1)
    for number, name in enumerate(names):
        at = [place + (number - (len(names) - 1) / 2) * height for place in range(len(rows))]
        samples = [medians[row.name].get(name) for row in rows]
        for axes, values in (
            (rates, [sample.value if sample else 0 for sample in samples]),
            (costs, [(sample.cpu_us or 0) if sample else 0 for sample in samples]),
        ):
            axes.barh(at, values, height, label=name, color=COLOURS[number % len(COLOURS)])
    rates.set_yticks(range(len(rows)), [row.title for row in rows])
    rates.invert_yaxis()
    rates.set_title("messages per second: more is better")
    costs.set_title("µs of CPU per message: less is better")
    for axes in (rates, costs):
        axes.set_xscale("log")
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*rates.get_legend_handles_labels(), loc="outside lower center", ncols=len(names) or 1)
    for suffix in ("svg", "png"):
        figure.savefig(path.with_suffix(f".{suffix}"), dpi=110, metadata={"Date": None} if suffix == "svg" else {})
