from __future__ import annotations

import pytest

from amqp_broker.run_report.texts import shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b & 'c'", "a &lt; b &amp; &#x27;c&#x27;"),
        ("one\n\ttwo", "one\n\ttwo"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\u202eabc\ud800\x00", "\\u202eabc\\ud800\\x00"),
        ("Grüße", "Grüße"),
        ("\u05d0b", "\u2068\u05d0b\u2069"),
    ],
)
def test_characters_that_cannot_be_seen_are_written_out(text: str, expected: str) -> None:
    assert shown(text) == expected
