from __future__ import annotations

from collections.abc import Iterator

import pytest
from mcp import Client

from amqp_broker.cli.own.assistant_server import CHANGING, server_of
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


async def test_a_broker_that_does_not_run_is_named() -> None:
    async with Client(server_of("", "http://127.0.0.1:1", ())) as client:
        found = await client.call_tool("attention", {})
    assert found.is_error
    assert "no HTTP API answers at 127.0.0.1:1" in str(found.content)
