"""The description on the package page: README.md, whose links lead to the repository. All else is in pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

FOLDER = Path(__file__).parent


def description() -> str:
    """Return README.md without links that lead nowhere outside of the repository."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text("utf-8"))["project"]
    readme = (FOLDER / "README.md").read_text("utf-8")
    return re.sub(r"\]\((?!https?:|#)", f"]({project['urls']['Repository']}/blob/main/", readme)


setup(long_description=description(), long_description_content_type="text/markdown")
