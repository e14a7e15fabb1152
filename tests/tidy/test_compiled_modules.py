"""Each module of a folder that setup.py compiles is compiled, or has a reason why not."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "amqp_broker"
SETUP: dict[str, Any] = runpy.run_path(str(ROOT / "setup.py"))
COMPILED: set[str] = {f"{folder}/{name}" for folder, names in SETUP["COMPILED"].items() for name in names.split()}
LEFT_OUT: dict[str, str] = SETUP["LEFT_OUT"]


def found() -> set[str]:
    """Return the modules of the folders from which modules are compiled."""
    paths = [path for folder in SETUP["COMPILED"] for path in (PACKAGE / folder).glob("*.py")]
    return {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in paths if path.stem != "__init__"}


def test_every_module_is_compiled_or_has_a_reason() -> None:
    undecided = {name for name in found() - COMPILED - LEFT_OUT.keys() if name.rpartition("/")[0] not in LEFT_OUT}
    assert undecided == set()


def test_the_modules_that_are_named_exist() -> None:
    assert found() >= COMPILED
    missing = {name for name in LEFT_OUT if not (PACKAGE / name).is_dir() and not (PACKAGE / f"{name}.py").is_file()}
    assert missing == set()


def test_no_module_is_both() -> None:
    assert COMPILED & LEFT_OUT.keys() == set()
