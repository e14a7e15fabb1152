"""Make the files of a release: `python -m docs.release 0.3.0`.

The unreleased changes of CHANGELOG.md get the version and the date, all packages get the version, and a file beside the
wheel has the changes for the release's page. `make release` commits, tags and builds it.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parents[1]
CHANGELOG: Final = "CHANGELOG.md"
PACKAGE: Final = "amqp_broker/__init__.py"
# Packages for other languages have the same version: their files, with the text before it.
OTHERS: Final = {
    "packages/npm/package.json": '"version": "',
    "packages/java/pom.xml": "<artifactId>amqp-broker-junit</artifactId>\n  <version>",
}
NOTES: Final = "dist/notes.md"

_UNRELEASED: Final = "## Unreleased\n"
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
_ASSIGNMENT: Final = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)


class ReleaseError(Exception):
    """There is nothing to release, or the version is not a later one."""


def cut(changelog: str, version: str, date: str) -> str:
    """Return the changelog with its unreleased changes as those of a version. Raise ReleaseError if there are none."""
    if not changes_of(changelog, "Unreleased"):
        raise ReleaseError(f"{CHANGELOG} has no unreleased changes")
    return changelog.replace(_UNRELEASED, f"{_UNRELEASED}\n## {version} - {date}\n", 1)


def changes_of(changelog: str, title: str) -> str:
    """Return the text below the heading of a section, "" if there is none."""
    found = re.search(rf"^## {re.escape(title)}\b.*\n((?:(?!## ).*\n?)*)", changelog, re.MULTILINE)
    return found[1].strip() if found else ""


def with_version(source: str, version: str) -> str:
    """Return a module with another `__version__`. Raise ReleaseError unless it is a later one."""
    found = _ASSIGNMENT.search(source)
    assert found is not None
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"a version has the form 1.2.3, not {version!r}")
    if _numbers(version) <= _numbers(found[1]):
        raise ReleaseError(f"{version} is not later than {found[1]}")
    return _ASSIGNMENT.sub(f'__version__ = "{version}"', source)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def release(project: Path, version: str, date: str) -> None:
    """Change the files of a project. Raise ReleaseError, and change nothing then."""
    package, changelog = project / PACKAGE, project / CHANGELOG
    source = with_version(package.read_text("utf-8"), version)
    text = cut(changelog.read_text("utf-8"), version, date)
    for path, before in OTHERS.items():
        other = (project / path).read_text("utf-8")
        changed = re.sub(rf"({re.escape(before)})[0-9.]+", rf"\g<1>{version}", other, count=1)
        (project / path).write_text(changed, "utf-8")
    package.write_text(source, "utf-8")
    changelog.write_text(text, "utf-8")
    notes = project / NOTES
    notes.parent.mkdir(exist_ok=True)
    notes.write_text(changes_of(text, version) + "\n", "utf-8")


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m docs.release VERSION")
    try:
        release(PROJECT, sys.argv[1], datetime.now(UTC).date().isoformat())
    except ReleaseError as error:
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
