"""How unreleased changes become a release."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from docs.release import CHANGELOG, NOTES, OTHERS, PACKAGE, ReleaseError, changes_of, cut, release, with_version
from tests.docs.blocks import PROJECT

CHANGES = "# Changelog\n\n## Unreleased\n\n### Fixed\n\n- One.\n\n## 0.2.0 - 2026-11-27\n\n### Added\n\n- Two.\n"
SOURCE = 'DISTRIBUTION = "x"\n__version__ = "0.2.0"\n'


def test_unreleased_changes_get_the_version_and_the_date() -> None:
    text = cut(CHANGES, "0.3.0", "2027-01-02")
    assert text == CHANGES.replace("## Unreleased\n", "## Unreleased\n\n## 0.3.0 - 2027-01-02\n")
    assert changes_of(text, "Unreleased") == ""
    assert changes_of(text, "0.3.0") == "### Fixed\n\n- One."


def test_changes_of_a_version_end_at_the_next_one() -> None:
    assert changes_of(CHANGES, "0.2.0") == "### Added\n\n- Two."
    assert changes_of(CHANGES, "0.1.0") == ""


def test_nothing_is_released_without_changes() -> None:
    with pytest.raises(ReleaseError, match=r"CHANGELOG.md has no unreleased changes"):
        cut("# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-11-27\n\n- Two.\n", "0.3.0", "2027-01-02")


def test_the_package_gets_the_version() -> None:
    assert with_version(SOURCE, "0.10.0") == 'DISTRIBUTION = "x"\n__version__ = "0.10.0"\n'


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("0.2.0", "0.2.0 is not later than 0.2.0"),
        ("0.1.9", "0.1.9 is not later than 0.2.0"),
        ("1.0", "a version has the form 1.2.3, not '1.0'"),
        ("v1.0.0", "a version has the form 1.2.3, not 'v1.0.0'"),
    ],
)
def test_a_wrong_version_is_refused_with_the_reason(version: str, reason: str) -> None:
    with pytest.raises(ReleaseError, match=f"^{reason}$"):
        with_version(SOURCE, version)


def project_of(folder: Path, changes: str) -> Path:
    (folder / PACKAGE).parent.mkdir(parents=True)
    (folder / PACKAGE).write_text(SOURCE, "utf-8")
    (folder / CHANGELOG).write_text(changes, "utf-8")
    for path in OTHERS:
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_bytes((PROJECT / path).read_bytes())
    return folder


def test_packages_for_other_languages_get_the_version(tmp_path: Path) -> None:
    project = project_of(tmp_path, CHANGES)
    release(project, "7.8.9", "2027-01-02")
    for path, before in OTHERS.items():
        assert f"{before}7.8.9" in (project / path).read_text("utf-8")
        assert (project / path).read_text("utf-8").count("7.8.9") == 1


def test_the_notes_of_a_release_are_its_changes(tmp_path: Path) -> None:
    project = project_of(tmp_path, CHANGES)
    release(project, "0.3.0", "2027-01-02")
    assert (project / NOTES).read_text("utf-8") == "### Fixed\n\n- One.\n"
    assert '"0.3.0"' in (project / PACKAGE).read_text("utf-8")
    assert "\n## 0.3.0 - 2027-01-02\n" in (project / CHANGELOG).read_text("utf-8")


def test_a_refused_release_changes_no_file(tmp_path: Path) -> None:
    project = project_of(tmp_path, "# Changelog\n\n## Unreleased\n")
    with pytest.raises(ReleaseError):
        release(project, "0.3.0", "2027-01-02")
    assert (project / PACKAGE).read_text("utf-8") == SOURCE
    assert not (project / NOTES).exists()


def test_make_release_commits_tags_and_builds() -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "release", "VERSION=0.3.0"],
        cwd=PROJECT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    steps = ["docs.release 0.3.0", "git commit", "git tag -a v0.3.0", "-m build", "twine check"]
    places = [planned.index(step) for step in steps]
    assert places == sorted(places)
