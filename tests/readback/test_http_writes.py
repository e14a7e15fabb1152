"""Each write of the HTTP API is read back by the command line or an AMQP client, and after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from amqp_broker.management.api_sections import SECTIONS
from tests.readback import access_writes, http_writes, own_writes
from tests.readback.case import Case
from tests.readback.node import Node, running

CASES = (
    *http_writes.OBJECTS,
    *http_writes.CLIENTS,
    *access_writes.ACCESS,
    *access_writes.VHOSTS,
    *http_writes.POLICIES,
    *http_writes.DEFINITIONS,
    *own_writes.CLOCK,
    *own_writes.FAULTS,
    *own_writes.EVENTS,
    *own_writes.NODE,
)
SHARED = tuple(case for case in CASES if not case.is_alone)
ALONE = tuple(case for case in CASES if case.is_alone)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running(tmp_path_factory.mktemp("node")) as node:
        yield node


def test_every_write_of_the_api_is_read_back() -> None:
    writes = {
        f"{endpoint.method} {endpoint.path}"
        for endpoints in SECTIONS.values()
        for endpoint in endpoints
        if endpoint.method != "GET"
    }
    named = {case.name.split(" of ")[0] for case in CASES}
    assert named.isdisjoint(http_writes.WITHOUT_EFFECT)
    assert writes == named | http_writes.WITHOUT_EFFECT.keys()


@pytest.mark.parametrize("case", SHARED, ids=lambda case: case.name)
def test_a_write_is_read_back(node: Node, case: Case) -> None:
    case.play(node)


@pytest.mark.parametrize("case", ALONE, ids=lambda case: case.name)
def test_a_write_to_the_whole_broker_is_read_back(tmp_path: Path, case: Case) -> None:
    with running(tmp_path) as node:
        case.play(node)
        if case.is_kept:
            node.restart()
            assert case.read(node) == case.expected


def test_durable_writes_are_read_after_a_restart(tmp_path: Path) -> None:
    kept = [case for case in SHARED if case.is_kept]
    with running(tmp_path) as node:
        for case in kept:
            for step in (*case.before, case.write):
                step(node)
        node.restart()
        found = {case.name: case.read(node) for case in kept}
    assert found == {case.name: case.expected for case in kept}
