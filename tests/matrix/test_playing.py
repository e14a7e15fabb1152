"""The harness with a script that plays as the clients' programs do."""

from __future__ import annotations

from pathlib import Path

from compat.matrix.playing import play
from compat.matrix.results import Kind, Outcome
from tests.matrix.rehearsal import Rehearsal, client

OK = Outcome(Kind.OK)
ASK = "print({!r}, flush=True); assert sys.stdin.readline() == 'DONE\\n'"


def outcomes(folder: Path, stage: Rehearsal, *scenarios: str, timeout_s: float = 20.0) -> dict[str, Outcome]:
    told: dict[str, Outcome] = {}
    play(client(folder, timeout_s=timeout_s), folder, stage, scenarios, told.__setitem__)
    return told


def test_a_program_plays_all_scenarios_in_one_process(tmp_path: Path) -> None:
    stage = Rehearsal({"a": "print(os.getpid())", "b": "print(os.getpid())"})
    assert outcomes(tmp_path, stage, "a", "b") == {"a": OK, "b": OK}
    log = [line for line in (tmp_path / "play-script.log").read_text("utf-8").splitlines() if line.isdigit()]
    assert len(log) == 2
    assert log[0] == log[1]


def test_a_program_has_the_broker_restarted_and_all_connections_closed(tmp_path: Path) -> None:
    stage = Rehearsal({"a": ASK.format("RESTART"), "b": ASK.format("CLOSE")})
    assert outcomes(tmp_path, stage, "a", "b") == {"a": OK, "b": OK}
    assert stage.asked == ["restart", "close", "leave"]


def test_a_broker_is_in_use_until_the_program_leaves_it_or_ends(tmp_path: Path) -> None:
    stage = Rehearsal({"a": ASK.format("USE") + "; " + ASK.format("LEAVE"), "b": ASK.format("USE") + "; sys.exit(1)"})
    assert outcomes(tmp_path, stage, "a", "b") == {"a": OK, "b": Outcome(Kind.FAILED, "the program ended with 1")}
    assert stage.asked == ["use", "leave", "use", "leave"]


def test_a_program_that_ends_is_restarted_for_the_rest(tmp_path: Path) -> None:
    stage = Rehearsal({"b": "sys.exit(3)"})
    assert outcomes(tmp_path, stage, "a", "b", "c") == {
        "a": OK,
        "b": Outcome(Kind.FAILED, "the program ended with 3"),
        "c": OK,
    }


def test_a_silent_program_is_ended_and_restarted(tmp_path: Path) -> None:
    stage = Rehearsal({"a": "time.sleep(100)"})
    assert outcomes(tmp_path, stage, "a", "b", timeout_s=1.0) == {
        "a": Outcome(Kind.FAILED, "no result within 1 s"),
        "b": OK,
    }


def test_a_result_of_another_scenario_is_a_failure(tmp_path: Path) -> None:
    stage = Rehearsal({"a": "print('RESULT b ok')"})
    assert outcomes(tmp_path, stage, "a")["a"] == Outcome(Kind.FAILED, "the program reported b instead")
