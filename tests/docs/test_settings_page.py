from __future__ import annotations

from amqp_broker.settings.settings import SETTINGS
from docs.settings_page import PAGE, page


def test_the_page_of_settings_is_generated_from_their_declarations() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m docs.settings_page writes it anew"


def test_every_setting_is_on_the_page_with_all_its_names() -> None:
    text = page()
    for declared in SETTINGS:
        assert f"### {declared.name}\n\n{declared.help}\n" in text
        for name in (*declared.env, *declared.keys):
            assert f"`{name}`" in text
