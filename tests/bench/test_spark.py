from __future__ import annotations

from bench.spark import TICKS_PER_S, Cost, python_seconds, text


def process(parent: int, own: int, of_ended: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the state on, with these ticks."""
    return ["S", str(parent), *["0"] * 9, str(own), "0", "0", str(of_ended)]


def test_the_time_of_python_is_that_of_all_processes_below_java() -> None:
    processes = {
        1: process(0, 1000, 1000),
        20: process(1, 500, 4),  # Java
        30: process(20, 10, 8),
        31: process(30, 16, 0),
        40: process(1, 300, 0),
    }
    assert python_seconds(20, processes) == (4 + 10 + 8 + 16) / TICKS_PER_S


def test_a_line_has_the_medians_per_row() -> None:
    costs = [Cost(2.0, 0.5, 1.0, 3.0), Cost(1.0, 0.4, 1.5, 2.0), Cost(4.0, 0.6, 0.5, 1.0)]
    assert text("a job", costs, 100_000) == "| a job | 50 000 | 5.0 µs | 10.0 µs | 20.0 µs |"
