"""The figures as tables for people, and as JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.flat import IDLE_CORES_MAX, FlatFigures, FlatRow
from bench.row import REFERENCE, SHARE, Row, Sample, cpu_advantage
from bench.side_by_side import Figures


def comparison_table(rows: Iterable[Row], names: Sequence[str], figures: Figures) -> str:
    """Return a line for each row with the figures of all brokers. x is the advantage of the first of them."""
    others = names[1:]
    header = ["", *names, *(f"x {name}" for name in others), *(f"CPU µs/msg {name}" for name in names)]
    header += [*(f"x CPU {name}" for name in others), *(f"p50/p99 µs {name}" for name in names), "load", "elsewhere"]
    lines = [header]
    for row in rows:
        samples = [figures.median(row, name) for name in names]
        own, *theirs = samples
        lines.append(
            [
                row.title,
                *(row.unit.text(one.value) if one else "" for one in samples),
                *(_times(row.advantage(own, one) if own else None) for one in theirs),
                *map(_cpu_text, samples),
                *(_times(cpu_advantage(row, own, one) if own else None) for one in theirs),
                *map(_latency_text, samples),
                _largest(one.generator_share for one in samples if one),
                _largest(one.elsewhere_share for one in samples if one),
            ]
        )
    filled = [column for column in zip(*lines, strict=True) if any(column[1:])]
    return _table([column[0] for column in filled], list(zip(*(column[1:] for column in filled), strict=True)))


def goals_table(rows: Iterable[Row], name: str, figures: Figures) -> tuple[str, bool]:
    """Return each goal with the figure of the broker of this name, and whether all goals are met."""
    lines, are_all_met = [], True
    for row in rows:
        own, reference = figures.median(row, name), figures.median(row, REFERENCE)
        for goal in row.goals_of(name):
            figure = goal.figure(row, own, reference) if own else None
            if figure is None:
                verdict, text = "not measured", ""
            else:
                verdict = "met" if goal.is_met(figure) else "MISSED"
                are_all_met = are_all_met and goal.is_met(figure)
                text = _times(figure) if goal.at_least is not None and row.unit is not SHARE else row.unit.text(figure)
            lines.append([row.title, goal.target, text, verdict])
    return _table(["", f"goal ({REFERENCE})", "measured", ""], lines, left=2), are_all_met


def flat_table(rows: Iterable[FlatRow], figures: FlatFigures) -> tuple[str, bool]:
    """Return the CPU per message in each setting relative to the first, and whether all are in bounds."""
    lines, are_all_met = [], True
    for row in rows:
        for variant in row.variants:
            sample, factor = figures.median(row, variant), figures.factor(row, variant)
            is_first = variant is row.variants[0]
            idle = figures.idle_shares.get((row.name, variant.title))
            verdict = ""
            if factor is not None:
                # The factor of a first setting is 1.
                is_met = factor <= row.factor_max and (idle is None or idle < IDLE_CORES_MAX)
                are_all_met = are_all_met and is_met
                if not (is_first and is_met):
                    verdict = "met" if is_met else "MISSED"
            lines.append(
                [
                    row.title if is_first else "",
                    variant.title,
                    _cpu_text(sample),
                    _times(None if is_first else factor),
                    "" if is_first else f"at most {row.factor_max:g}x",
                    verdict,
                    f"{sample.value / 1000:.0f} k/s" if sample else "",
                    f"{idle:.1%}" if idle is not None else "",
                ]
            )
    return _table(["", "setting", "CPU µs/msg", "of the first", "goal", "", "rate", "idle"], lines, left=2), are_all_met


def as_json(rows: Iterable[Row], figures: Figures, flat_rows: Iterable[FlatRow], flat: FlatFigures) -> dict[str, Any]:
    """Return all samples and their medians."""
    return {
        "machine": machine(),
        "rows": {
            row.name: {
                broker: {"median": _plain(figures.median(row, broker)), "samples": [_plain(one) for one in samples]}
                for broker, samples in figures.samples.get(row.name, {}).items()
            }
            for row in rows
        },
        "flat": {
            row.name: {
                variant.title: {
                    "median": _plain(flat.median(row, variant)),
                    "samples": [_plain(one) for one in flat.samples.get((row.name, variant.title), [])],
                    "factor": flat.factor(row, variant),
                    "idle_share": flat.idle_shares.get((row.name, variant.title)),
                }
                for variant in row.variants
            }
            for row in flat_rows
        },
        "failures": figures.failures + flat.failures,
    }


def machine() -> dict[str, str | int]:
    """Return the properties of the machine that affect the figures."""
    models = [line for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines() if line.startswith("model name")]
    return {
        "cpu": models[0].partition(":")[2].strip() if models else platform.machine(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _plain(sample: Sample | None) -> dict[str, float]:
    return {name: value for name, value in asdict(sample).items() if value is not None} if sample else {}


def _times(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.2f}x" if figure < 2 else f"{figure:.1f}x"


def _cpu_text(sample: Sample | None) -> str:
    return "" if sample is None or sample.cpu_us is None else f"{sample.cpu_us:.2f}"


def _latency_text(sample: Sample | None) -> str:
    if sample is None or sample.p50_us is None or sample.p99_us is None:
        return ""
    return f"{sample.p50_us:.0f}/{sample.p99_us:.0f}"


def _largest(shares: Iterable[float | None]) -> str:
    """Return the largest share of a core.

    Near 100 %, the load generator would be the limit, and other programs would make the machine a busy one.
    """
    measured = [share for share in shares if share is not None]
    return f"{max(measured):.0%}" if measured else ""


def _table(header: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return lines of columns: the first ones are words, aligned left, the others are figures."""
    every = [header, *lines]
    widths = [max(len(line[column]) for line in every) for column in range(len(header))]
    texts = []
    for line in every:
        columns = zip(line, widths, strict=True)
        cells = [cell.ljust(width) if at < left else cell.rjust(width) for at, (cell, width) in enumerate(columns)]
        texts.append("  ".join(cells).rstrip())
    texts.insert(1, "-" * max(map(len, texts)))
    return "\n".join(texts)
