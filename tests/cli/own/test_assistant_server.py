from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client

from amqp_broker.cli.own.assistant_server import ANSWER_MAX, CHANGING, ENTRIES_MAX, TEXT_MAX, Bound, server_of
from amqp_broker.testing import EmbeddedBroker

READING = {
    *("advice", "attention", "clock", "connections", "events", "fault_rules", "message", "overview", "peek", "queue"),
    *("queues", "topology", "why"),
}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


async def tools_of(*allowed: str) -> dict[str, bool | None]:
    """Return whether each tool only reads, by its name."""
    async with Client(server_of("", "", allowed)) as client:
        tools = (await client.list_tools()).tools
    assert all(tool.annotations is not None for tool in tools)
    return {tool.name: tool.annotations.read_only_hint for tool in tools if tool.annotations is not None}


async def test_only_tools_that_read_are_there_by_default() -> None:
    found = await tools_of()
    assert set(found) == READING
    assert all(found.values())


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("faults", {"fault_actions", "add_fault", "remove_fault"}),
        ("clock", {"advance_clock", "freeze_clock", "resume_clock"}),
        ("event-log", {"start_event_log"}),
    ],
)
async def test_tools_that_change_something_have_to_be_allowed(word: str, names: set[str]) -> None:
    found = await tools_of(word, word)
    assert set(found) - READING == names
    assert {name for name, reads in found.items() if not reads} == names - {"fault_actions"}


async def test_all_tools_have_a_description_that_begins_with_a_capital_letter() -> None:
    async with Client(server_of("", "", CHANGING)) as client:
        tools = (await client.list_tools()).tools
    assert len(tools) == 20
    for tool in tools:
        assert tool.description
        assert tool.description[0].isupper()
        assert "\n  " not in tool.description


async def test_an_answer_is_structured(broker: EmbeddedBroker) -> None:
    async with Client(server_of("", broker.management_url, ())) as client:
        found = await client.call_tool("attention", {})
    assert (found.is_error, found.structured_content) == (False, {"findings": []})


async def test_a_refusal_is_a_sentence_for_the_assistant(broker: EmbeddedBroker) -> None:
    async with Client(server_of("", broker.management_url, ())) as client:
        found = await client.call_tool("queue", {"queue": "typo"})
        wrong = await client.call_tool("peek", {"queue": "typo", "count": "many"})
    assert found.is_error
    assert "there is no queue 'typo' in vhost '/'" in str(found.content)
    assert wrong.is_error
    assert "count" in str(wrong.content)


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("peek", {"queue": "q", "serch": "x"}, "serch"),
        ("peek", {"queue": "q", "count": 1000}, "count"),
        ("peek", {"queue": "q", "state": "gone"}, "state"),
        ("events", {"event": "bogus"}, "dead_letter"),
        ("message", {"number": -1}, "number"),
        ("queue", {"queue": "\ud800"}, "queue"),
    ],
)
async def test_a_wrong_parameter_is_named(tool: str, arguments: dict[str, Any], text: str) -> None:
    async with Client(server_of("", "", ())) as client:
        found = await client.call_tool(tool, arguments)
    assert found.is_error
    assert text in str(found.content)


async def test_effects_that_may_stay_are_hinted_at() -> None:
    async with Client(server_of("", "", CHANGING)) as client:
        tools = (await client.list_tools()).tools
    lasting = {tool.name for tool in tools if tool.annotations is not None and tool.annotations.destructive_hint}
    assert lasting == {"add_fault", "advance_clock"}


def size(value: Any) -> int:
    return len(json.dumps(value))


def test_a_large_answer_is_cut_and_says_so() -> None:
    assert Bound().of({"a": ["x" * TEXT_MAX, 1, None, True]}) == {"a": ["x" * TEXT_MAX, 1, None, True]}
    assert Bound().of("x" * (TEXT_MAX + 5)) == f"{'x' * TEXT_MAX}… (5 more characters)"
    assert Bound().of([1] * (ENTRIES_MAX + 5))[-1] == "… 5 more are left out"
    assert Bound().of({f"{number}": 1 for number in range(ENTRIES_MAX + 5)})["…"] == "5 more are left out"
    row = {f"header{number}": "x" * 1000 for number in range(100)}
    answer = Bound().of({"messages": [row] * 50, "next": 50})
    assert size(answer) < 2 * ANSWER_MAX
    assert (answer["messages"][-1], answer["next"]) == ("… 49 more are left out", 50)
    assert size(Bound().of([[row] * 100] * 100)) < 2 * ANSWER_MAX
    assert size(Bound().of({f"{number}": "x" * TEXT_MAX for number in range(ENTRIES_MAX)})) < 2 * ANSWER_MAX


async def test_a_broker_that_does_not_run_is_named() -> None:
    async with Client(server_of("", "http://127.0.0.1:1", ())) as client:
        found = await client.call_tool("attention", {})
    assert found.is_error
    assert "no HTTP API answers at 127.0.0.1:1" in str(found.content)
