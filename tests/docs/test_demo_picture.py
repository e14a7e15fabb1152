"""The picture of the confirm demo is that of the figures beside it."""

from __future__ import annotations

import json
import re

from docs.demo_picture import IMAGES, draw


def test_the_picture_shows_the_figures() -> None:
    picture = draw(json.loads((IMAGES / "demo.json").read_text("utf-8")))
    assert (IMAGES / "demo.svg").read_text("utf-8") == picture


def test_the_picture_loads_nothing() -> None:
    assert not re.search(r"url\((?!#)|href=|@font-face", (IMAGES / "demo.svg").read_text("utf-8"))
