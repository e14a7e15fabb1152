from __future__ import annotations

from pathlib import Path

from mcp import Client, StdioServerParameters

from tests.cli.program import MODULE, environment, program, run, run_as, serving


def started(*words: str) -> StdioServerParameters:
    command, *arguments = program()
    return StdioServerParameters(command=command, args=[*arguments, "mcp", *words], env=environment())


async def test_an_assistant_asks_over_stdin_and_stdout(tmp_path: Path) -> None:
    with serving(tmp_path, "--management-port", "0") as broker:
        broker.client().close()
        async with Client(started("--node", str(broker.port), "--allow", "clock")) as client:
            found = await client.call_tool("advance_clock", {"duration": "1h"})
            attention = await client.call_tool("attention", {})
    assert not found.is_error
    assert attention.structured_content is not None
    assert [finding["kind"] for finding in attention.structured_content["findings"]] == ["clock"]


def test_another_word_to_allow_is_refused() -> None:
    done = run("mcp", "--allow", "everything")
    assert (done.returncode, done.stdout) == (64, "")
    assert "'everything' is not one of 'faults', 'clock', 'event-log'" in done.stderr


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError(name='mcp')", "utf-8")
    done = run_as(MODULE, "mcp", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr == "amqp-broker: this command needs more packages: pip install 'amqp-broker[mcp]'.\n"
