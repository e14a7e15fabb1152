from __future__ import annotations

from docs.metrics_table import PAGE, page


def test_the_table_of_metrics_is_generated_from_their_declarations() -> None:
    text = PAGE.read_text("utf-8")
    assert text == page(text), "python -m docs.metrics_table writes it anew"
