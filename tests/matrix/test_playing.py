"""The harness and programs of its own: a script that plays as it is told, in a process as those of the clients are."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from compat.matrix.playing import InstallError, install, play
from compat.matrix.results import Kind, Outcome
from compat.matrix.rows import Client, Row

OK = Outcome(Kind.OK)
# Says ok to each scenario, and before that does what the environment says for it.
SCRIPT = """
import os, sys, time
for scenario in sys.argv[1:]:
    exec(os.environ.get(scenario, ""))
    print("RESULT", scenario, "ok", flush=True)
"""
ASK = "print({!r}, flush=True); assert sys.stdin.readline() == 'DONE\\n'"


@dataclass
class Rehearsal:
    """A stage without a broker: it notes what it is asked for."""

    variables: dict[str, str]
    asked: list[str] = field(default_factory=list)

    def environment(self, prefix: str) -> dict[str, str]:
        return {"PREFIX": prefix, **self.variables}

    def restart(self) -> None:
        self.asked.append("restart")

    def close_connections(self) -> None:
        self.asked.append("close")


def client(folder: Path, **more: object) -> Client:
    row = Row("script", "Python", "1.0", (sys.executable, "play.py"), **more)  # type: ignore[arg-type]
    return Client(row, folder)


def outcomes(folder: Path, stage: Rehearsal, *scenarios: str, timeout_s: float = 20.0) -> dict[str, Outcome]:
    (folder / "play.py").write_text(SCRIPT)
    told: dict[str, Outcome] = {}
    player = client(folder, timeout_s=timeout_s)
    play(player, folder, stage, scenarios, told.__setitem__)  # type: ignore[arg-type]
    return told


def test_a_program_plays_all_scenarios_in_one_process(tmp_path: Path) -> None:
    stage = Rehearsal({"a": "print(os.getpid())", "b": "print(os.getpid())"})
    assert outcomes(tmp_path, stage, "a", "b") == {"a": OK, "b": OK}
    log = [line for line in (tmp_path / "play-script.log").read_text().splitlines() if line.isdigit()]
    assert len(log) == 2
    assert log[0] == log[1]


def test_a_program_has_the_broker_restarted_and_all_connections_closed(tmp_path: Path) -> None:
    stage = Rehearsal({"a": ASK.format("RESTART"), "b": ASK.format("CLOSE")})
    assert outcomes(tmp_path, stage, "a", "b") == {"a": OK, "b": OK}
    assert stage.asked == ["restart", "close"]


def test_a_program_that_ends_is_started_again_for_the_rest(tmp_path: Path) -> None:
    stage = Rehearsal({"b": "sys.exit(3)"})
    assert outcomes(tmp_path, stage, "a", "b", "c") == {
        "a": OK,
        "b": Outcome(Kind.FAILED, "the program ended with 3"),
        "c": OK,
    }


def test_a_program_that_says_nothing_is_ended_and_started_again(tmp_path: Path) -> None:
    stage = Rehearsal({"a": "time.sleep(100)"})
    assert outcomes(tmp_path, stage, "a", "b", timeout_s=1.0) == {
        "a": Outcome(Kind.FAILED, "no result within 1 s"),
        "b": OK,
    }


def test_a_result_of_another_scenario_is_a_failure(tmp_path: Path) -> None:
    stage = Rehearsal({"a": "print('RESULT b ok')"})
    assert outcomes(tmp_path, stage, "a")["a"] == Outcome(Kind.FAILED, "the program told of b instead")


def test_what_a_client_needs_is_built_in_a_copy_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "source").write_text("1")
    build = (sys.executable, "-c", "open('built', 'w').write(open('source').read())")
    copy = install(client(tmp_path / "one", install=(build,)), tmp_path / "cache")
    assert copy == tmp_path / "cache" / "one"
    assert (copy / "built").read_text() == "1"
    assert not (tmp_path / "one" / "built").exists()


def test_what_is_gone_from_a_folder_is_gone_from_its_copy_and_what_was_built_stays(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "source").write_text("1")
    copy = install(client(tmp_path / "one"), tmp_path / "cache")
    (copy / "built").write_text("1")
    (tmp_path / "one" / "source").rename(tmp_path / "one" / "renamed")
    install(client(tmp_path / "one"), tmp_path / "cache")
    assert not (copy / "source").exists()
    assert (copy / "renamed").exists()
    assert (copy / "built").exists()


def test_a_command_that_fails_says_why_a_client_cannot_be_installed(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    build = (sys.executable, "-c", "import sys; sys.exit('no such package')")
    with pytest.raises(InstallError, match=r"-c import sys; .*: no such package$"):
        install(client(tmp_path / "one", install=(build,)), tmp_path / "cache")


def test_a_tool_that_is_not_there_says_so(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(InstallError, match="no-such-tool"):
        install(client(tmp_path / "one", install=(("no-such-tool",),)), tmp_path / "cache")


def test_a_client_that_cannot_be_had_is_not_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="there is no package of it"):
        install(client(tmp_path / "none", absent="there is no package of it"), tmp_path / "cache")
