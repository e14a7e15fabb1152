"""The figures of a run in the documentation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import page
from bench.benchmarks import ROWS
from bench.chart import draw
from bench.row import GROUPS, Sample

FOUND = {
    "machine": {"cores": 2, "cpu": "a processor", "system": "Linux 6", "python": "3.11.7"},
    "rows": {
        "rpc-1": {"amqp-broker": {"median": {"value": 4_000, "cpu_us": 30.0, "p99_us": 460.0}, "samples": []}},
        "plain": {
            "amqp-broker": {"median": {"value": 400_000, "cpu_us": 2.0}, "samples": []},
            "RabbitMQ 4.3": {"median": {"value": 80_000, "cpu_us": 20.0}, "samples": []},
        },
        "idle": {"amqp-broker": {"median": {"value": 34.0}, "samples": []}},
    },
}


def test_a_row_has_figures_and_advantages() -> None:
    medians = page.medians_of(FOUND)
    lines = page.full_table({"plain": medians["plain"]}).splitlines()
    assert lines[0] == "| | amqp-broker, pure Python | RabbitMQ 4.3 |  |"
    assert lines[2] == "| 16 B, no ack, no confirm | 400 k/s, 2.0 µs | 80.0 k/s, 20.0 µs | 5.0x, 1/10.0 |"


def test_the_readme_begins_with_the_build_that_make_run_gives() -> None:
    compiled = {"amqp-broker compiled": Sample(800_000, cpu_us=1.0), **page.medians_of(FOUND)["plain"]}
    lines = page.readme_table({"plain": compiled}).splitlines()
    assert lines[0] == "| | `make run` |  | compiled |  | RabbitMQ 4.3 |"
    assert lines[2] == (
        "| 16 B, no ack, no confirm | 400 k/s, 2.0 µs | 5.0x, 1/10.0 | 800 k/s, 1.0 µs | 10.0x, 1/20.0 "
        "| 80.0 k/s, 20.0 µs |"
    )


def test_a_broker_without_a_figure_has_empty_cells() -> None:
    assert (
        page.full_table(page.medians_of(FOUND)).splitlines()[-1]
        == "| memory when idle, with management | 34 MB |  |  |"
    )


def test_calls_have_the_duration_that_one_in_a_hundred_exceeds() -> None:
    assert "| 4.0 k/s, 30.0 µs, p99 0.46 ms |" in page.tables(page.medians_of(FOUND), page.full_table)


def test_real_messages_come_first_and_repeated_ones_are_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.tables({row.name: {"amqp-broker": Sample(1.0)} for row in reversed(ROWS)}, page.full_table)
    assert [line for line in text.splitlines() if line.startswith("**")] == [f"**{group}:**" for group in GROUPS]
    assert "One message repeated" in GROUPS[2]


def test_a_reason_stands_below_its_table_if_a_row_is_less_than_twice_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(ROWS[0], reason="the wait for the disk.")
    monkeypatch.setattr(page, "ROWS", (row,))
    slow = {"amqp-broker": Sample(19.0), "RabbitMQ 4.3": Sample(10.0)}
    assert page.tables({row.name: slow}, page.full_table).endswith(
        f"|---|---|\n| {row.title} | the wait for the disk. |\n"
    )
    assert "disk" not in page.tables({row.name: {**slow, "amqp-broker": Sample(20.0)}}, page.full_table)
    assert "disk" in page.tables({row.name: {"amqp-broker": Sample(20.0)}}, page.full_table)


def test_only_the_generated_part_of_a_page_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, readme = tmp_path / "performance.md", tmp_path / "README.md"
    for written in (file, readme):
        written.write_text(f"Before.\n\n{page.BEGIN}old\n{page.END}\nAfter.\n", "utf-8")
    monkeypatch.setattr(page, "PAGE", file)
    monkeypatch.setattr(page, "README", readme)
    monkeypatch.setattr(page, "IMAGES", tmp_path)
    page.write(FOUND)
    text = file.read_text("utf-8")
    assert text.startswith(
        f"Before.\n\n{page.BEGIN}2 x a processor, Linux 6, CPython 3.11.7.\n\n**An application's day"
    )
    assert text.endswith(f"|\n{page.END}\nAfter.\n")
    text = readme.read_text("utf-8")
    assert text.startswith(f"Before.\n\n{page.BEGIN}**An application's day")
    assert text.endswith(f"|\n{page.END}\nAfter.\n")


def test_runs_of_one_machine_are_joined() -> None:
    again = {"machine": FOUND["machine"], "rows": {"plain": {"amqp-broker": {"median": {"value": 1.0}}}, "idle": {}}}
    joined = page.medians_of(page.joined([FOUND, again]))
    assert joined["plain"] == {"amqp-broker": Sample(1.0)}
    assert joined["idle"] == {"amqp-broker": Sample(34.0)}
    with pytest.raises(ValueError, match="different machines"):
        page.joined([FOUND, {"machine": {}, "rows": {}}])


def test_the_drawing_names_each_broker_and_row(tmp_path: Path) -> None:
    draw({row.name: {"amqp-broker": Sample(1000.0, cpu_us=3.0)} for row in ROWS}, tmp_path / "speed")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "speed.svg").read_text("utf-8").startswith("<?xml")
