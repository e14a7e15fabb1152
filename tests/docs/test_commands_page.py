from __future__ import annotations

from docs.commands_page import PAGE, page


def test_the_page_of_commands_is_generated_from_their_declarations() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m docs.commands_page writes it anew"
