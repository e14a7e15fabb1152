from __future__ import annotations

import pytest

from amqp_broker.broker.lab.durations import duration_ms


def test_durations_are_sums_of_units() -> None:
    assert [duration_ms(text) for text in ("500ms", "30s", "1h30m", "2d", "0s")] == [
        500,
        30_000,
        5_400_000,
        172_800_000,
        0,
    ]


@pytest.mark.parametrize("text", ["", "30", "m", "-1s", "1.5h", "1 h", "1H", "9" * 16 + "s", "1s" * 6])
def test_another_text_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration like 500ms"):
        duration_ms(text)
