"""A page of HTML with its scripts and styles in it. Its policy loads nothing and runs no other script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Final

# uPlot is that of the broker's page.
PARENTS: Final = (Path(__file__).parent / "static", Path(__file__).parents[1] / "management/page/static/vendor")
# It tells a report from other pages, which are not overwritten.
GENERATOR: Final = '<meta name="generator" content="amqp-broker pipeline report">'
NO_SCRIPTS: Final = "<noscript><p>Without JavaScript there are no plots; the tables are complete.</p></noscript>"


def document(title: str, body: str, scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a page with these files, of which scripts run at its end."""
    codes, style = [text_of(name) for name in scripts], "".join(text_of(name) for name in styles)
    policy = (
        f"default-src 'none'; style-src '{hash_of(style)}'; "
        f"script-src {' '.join(repr(hash_of(code)) for code in codes)}; base-uri 'none'; form-action 'none'"
    )
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{GENERATOR}<title>{escape(title)}</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{style}</style></head><body>",
        body,
        NO_SCRIPTS,
        f"<!--\n{text_of('uplot-license.txt')}-->",
        *(f"<script>{code}</script>" for code in codes),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def text_of(name: str) -> str:
    """Return the content of a file of the page."""
    return next(file for folder in PARENTS if (file := folder / name).exists()).read_text("utf-8")


def hash_of(text: str) -> str:
    """Return the hash by which a policy allows a script or a style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
