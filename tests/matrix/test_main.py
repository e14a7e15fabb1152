"""The command of the matrix, with a client that needs a program which no machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.matrix import __main__ as command
from compat.matrix.results import AMQP_BROKER, ClientResults, Kind, Outcome, load, save
from compat.matrix.table import BEGIN, END
from tests.matrix.rehearsal import client

REASON = "it needs no-such-tool, which Debian does not package"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the results and the page, in CI."""
    places = [f"{BEGIN.format(what)}\n{END.format(what)}\n" for what in ("matrix", "scenarios")]
    (tmp_path / "README.md").write_text("".join(places), "utf-8")
    build = ("false",)  # no build may be tried
    one = client(tmp_path / "one", "one", install=(build,), needs=("no-such-tool",))
    monkeypatch.setattr(command, "clients", lambda: [one])
    monkeypatch.setattr(command, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(command, "PAGE", tmp_path / "README.md")
    monkeypatch.setenv("CI", "true")
    return tmp_path


def test_a_client_that_lacks_its_program_is_not_played_and_no_failure(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["one"]) == 0
    assert f"one: not played here: {REASON}\n" in capsys.readouterr().out
    page = (folder / "README.md").read_text("utf-8")
    assert "| Python: one 1.0, not played here |" in page
    assert f"Not played here:\n\n- one: {REASON}\n" in page


def test_results_from_another_machine_are_kept(folder: Path) -> None:
    played = {"one": ClientResults("Python", "1.0", outcomes={AMQP_BROKER: {"connect": Outcome(Kind.OK)}})}
    save(folder / "results.json", played)
    assert command.main([]) == 0
    assert load(folder / "results.json") == played
    assert "| Python: one 1.0 | ✓/? |" in (folder / "README.md").read_text("utf-8")


def test_results_of_another_version_are_dropped(folder: Path) -> None:
    played = {"one": ClientResults("Python", "0.9", outcomes={AMQP_BROKER: {"connect": Outcome(Kind.OK)}})}
    save(folder / "results.json", played)
    assert command.main([]) == 0
    assert load(folder / "results.json") == {"one": ClientResults("Python", "1.0", absent=REASON)}


def test_a_client_that_lacks_its_program_is_not_installed(folder: Path) -> None:
    assert command.main(["--install"]) == 0
    assert not (folder / "cache" / "one").exists()
