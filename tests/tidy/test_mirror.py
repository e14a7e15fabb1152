"""Each module has a test module at the same path; a large one may have several, `test_<module>_<aspect>.py`.

`tests/test_<document>.py` tests the promises of a document. A module of the tests has its test module beside it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "amqp_broker"
# The Spark format is a package beside `amqp_broker`; its tests have a folder of that name.
FORMAT = "pyspark_amqp"

# Scenarios are tests: compat/oracle plays all of them.
SCENARIOS = Path("conformance/scenarios")

PACKAGES = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")}
FOLDERS = [*sorted(PACKAGES - {SCENARIOS}), Path(FORMAT)]


def sources(folder: Path) -> Path:
    """Return the folder of the modules that the tests of this folder belong to."""
    return PACKAGE.parent / folder if folder.name == FORMAT else PACKAGE / folder


def names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.stem for path in folder.glob(pattern) if not path.stem.startswith("__"))


def test_the_packages_are_found() -> None:
    assert {Path(), Path("amqp"), Path("broker/queues"), Path("session"), Path(FORMAT)} <= set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_every_module_has_a_test_module(folder: Path) -> None:
    tests = names(TESTS / folder, "test_*.py")
    assert [name for name in names(sources(folder), "*.py") if f"test_{name}" not in tests] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_every_test_module_has_a_module(folder: Path) -> None:
    expected = [f"test_{name}" for name in names(sources(folder), "*.py")]
    if folder == Path():
        expected += [f"test_{name.lower()}" for name in (*names(TESTS.parent, "*.md"), *names(TESTS, "*.py"))]
    strays = [
        name
        for name in names(TESTS / folder, "test_*.py")
        if name not in expected and not name.startswith(tuple(f"{start}_" for start in expected))
    ]
    assert strays == []
