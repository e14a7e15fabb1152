from __future__ import annotations

import pytest

from bench.generator import LoadError
from bench.perftest import Sample, rate_in, text

PRINTED = """\
id: test-1, time 1.000 s, sent: 100 msg/s, received: 90 msg/s
id: test-1, sending rate avg: 12345 msg/s
id: test-1, receiving rate avg: 12001 msg/s
"""


def test_the_rate_is_that_of_received_messages() -> None:
    assert rate_in(PRINTED) == 12001


def test_without_consumers_it_is_that_of_sent_messages() -> None:
    assert rate_in(PRINTED.replace("12001", "0")) == 12345


def test_a_run_without_a_rate_has_failed() -> None:
    with pytest.raises(LoadError, match="has printed no rate: nothing"):
        rate_in("nothing")


def test_a_cell_has_the_medians() -> None:
    samples = [Sample(1000, 10, 100), Sample(3000, 30, 300), Sample(2000, 20, 200)]
    assert text(samples) == "2.0 k/s, 20 µs (PerfTest 200)"
