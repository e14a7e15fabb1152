"""The figures of a run in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import page
from bench.benchmarks import ROWS, Sample
from bench.chart import draw

FOUND = {
    "machine": {"cores": 2, "cpu": "a processor", "system": "Linux 6", "python": "3.11.7"},
    "rows": {
        "plain": {
            "amqp-broker": {"median": {"value": 400_000, "cpu_us": 2.0}, "samples": []},
            "RabbitMQ 4.3": {"median": {"value": 80_000, "cpu_us": 20.0}, "samples": []},
        },
        "idle": {"amqp-broker": {"median": {"value": 34.0}, "samples": []}},
    },
}


def test_a_row_has_figures_and_advantages() -> None:
    lines = page.table(page.medians_of(FOUND)).splitlines()
    assert lines[0] == "| | amqp-broker | RabbitMQ 4.3 |  |"
    assert lines[2] == "| 16 B, no ack, no confirm | 400 k/s, 2.0 µs | 80.0 k/s, 20.0 µs | 5.0x, 1/10.0 |"


def test_a_broker_without_a_figure_has_empty_cells() -> None:
    assert page.table(page.medians_of(FOUND)).splitlines()[-1] == "| memory when idle, with management | 34 MB |  |  |"


def test_only_the_generated_part_of_a_page_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, readme = tmp_path / "performance.md", tmp_path / "README.md"
    for written in (file, readme):
        written.write_text(f"Before.\n\n{page.BEGIN}old\n{page.END}\nAfter.\n", "utf-8")
    monkeypatch.setattr(page, "PAGE", file)
    monkeypatch.setattr(page, "README", readme)
    monkeypatch.setattr(page, "IMAGES", tmp_path)
    page.write(FOUND)
    text = file.read_text("utf-8")
    assert text.startswith(f"Before.\n\n{page.BEGIN}2 x a processor, Linux 6, CPython 3.11.7.\n\n| | amqp-broker")
    assert text.endswith(f"|\n{page.END}\nAfter.\n")
    text = readme.read_text("utf-8")
    assert text.startswith(f"Before.\n\n{page.BEGIN}| | amqp-broker")
    assert text.endswith(f"|\n{page.END}\nAfter.\n")


def test_the_drawing_names_each_broker_and_row(tmp_path: Path) -> None:
    draw({row.name: {"amqp-broker": Sample(1000.0, cpu_us=3.0)} for row in ROWS}, tmp_path / "speed")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "speed.svg").read_text("utf-8").startswith("<?xml")
