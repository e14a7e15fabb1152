from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from mcp import Client, StdioServerParameters

from amqp_broker.cli.own.assistant_tools import WAIT_S_MAX
from tests.cli.program import MODULE, environment, program, run, run_as, serving


def started(*words: str) -> StdioServerParameters:
    command, *arguments = program()
    return StdioServerParameters(command=command, args=[*arguments, "mcp", *words], env=environment())


async def test_an_assistant_asks_over_stdin_and_stdout(tmp_path: Path) -> None:
    with serving(tmp_path, "--management-port", "0") as broker:
        broker.client().close()
        async with Client(started("--node", str(broker.port), "--allow", "faults,clock")) as client:
            found = await client.call_tool("advance_clock", {"duration": "1h"})
            attention = await client.call_tool("attention", {})
    assert not found.is_error
    assert attention.structured_content is not None
    assert [finding["kind"] for finding in attention.structured_content["findings"]] == ["clock"]


def test_an_assistant_that_leaves_ends_a_request_that_waits(tmp_path: Path) -> None:
    with serving(tmp_path, "--management-port", "0", "--event-log") as broker:
        asking = [*program(), "mcp", "--node", str(broker.port)]
        with subprocess.Popen(
            asking, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            waiting = {"name": "events", "arguments": {"event": "ack", "count": 1, "wait_s": 60}}
            server.stdin.write(request(1, "initialize", hello))
            server.stdin.flush()
            assert json.loads(server.stdout.readline())["id"] == 1
            server.stdin.write(request(None, "notifications/initialized", {}) + request(2, "tools/call", waiting))
            # The answer to this one shows that the other has begun.
            server.stdin.write(request(3, "tools/call", {"name": "clock", "arguments": {}}))
            server.stdin.flush()
            assert json.loads(server.stdout.readline())["id"] == 3
            server.stdin.close()
            assert server.wait(timeout=WAIT_S_MAX / 2) == 0


def request(number: int | None, method: str, params: Mapping[str, object]) -> str:
    head = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", **head, "method": method, "params": params}) + "\n"


def test_another_word_to_allow_is_refused() -> None:
    done = run("mcp", "--allow", "everything")
    assert (done.returncode, done.stdout) == (64, "")
    assert "'everything' is not one of faults, clock, event-log" in done.stderr


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError(name='mcp')", "utf-8")
    done = run_as(MODULE, "mcp", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (69, "")
    assert (
        done.stderr
        == "amqp-broker: this command needs more packages: pip install '.[mcp]' in the checkout of amqp-broker.\n"
    )
