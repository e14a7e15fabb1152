from __future__ import annotations

import pytest

from bench import bare_relay
from bench.bare_relay import Row, Sample, line, run


@pytest.mark.verify
@pytest.mark.parametrize("row", [Row("flat out", 16, 1000), Row("paced", 100, 100, 10_000, 10)])
def test_every_message_comes_back_through_the_relay(row: Row) -> None:
    sample = run(row)
    assert sample.rate > 0
    assert 0 < sample.reads_per_message <= 1
    assert sample.copy_us > 0


def test_a_line_has_the_medians_of_its_samples() -> None:
    samples = [Sample(1_500_000, 1, 0.5, 0.1), Sample(900, 3, 0.7, 0.3), Sample(2_000_000, 2, 0.6, 0.2)]
    assert line(Row("16 B", 16, 1), samples) == "| 16 B | 1500 k/s | 2.00 µs | 0.60 | 0.20 µs |"


def test_a_low_rate_is_shown_with_a_decimal() -> None:
    assert "| 20.0 k/s |" in line(bare_relay.ROWS[-1], [Sample(20_000, 1, 1, 1)])
