from __future__ import annotations

from dataclasses import fields

from amqp_broker.config import Config
from docs.settings_page import PAGE, page


def test_the_page_of_settings_is_what_their_declarations_give() -> None:
    assert PAGE.read_text() == page(), "python -m docs.settings_page writes it anew"


def test_every_setting_is_there_with_all_its_names() -> None:
    text = page()
    for declared in fields(Config):
        assert f"### {declared.name}\n\n{declared.metadata['help']}\n" in text
        for name in (*declared.metadata["env"], *declared.metadata["keys"]):
            assert f"`{name}`" in text
