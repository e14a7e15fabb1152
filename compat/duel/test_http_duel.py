"""The duel over HTTP: it finds differences, and a slice of its programs finds none at RabbitMQ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import strategies as st

from compat.brokers import AmqpBroker
from compat.duel.http_duel import SURFACES, brokers, search
from compat.duel.http_judge import HttpJudge
from compat.duel.http_steps import VHOST, Step
from compat.management.http_asking import Api, Ask
from compat.oracles.oracle import ORACLES

PROGRAMS = 15
SEED = "1"

TRANSIENT = Step(Ask("PUT", f"queues/{VHOST}/q", {"durable": False}))
DURABLE = Step(Ask("PUT", f"queues/{VHOST}/q", {"durable": True}))
LIST = Step(Ask("GET", f"exchanges/{VHOST}"))


def test_a_difference_is_found_and_shown_by_the_smallest_program(tmp_path: Path) -> None:
    """Only one of the versions permits transient queues."""
    older, newer = (AmqpBroker(tmp_path / profile, profile=profile) for profile in ("4.0", "4.3"))
    with older.running(), newer.running():
        judge = HttpJudge(Api(older), Api(newer), "4.3")
        assert list(search(judge, st.lists(st.sampled_from([LIST, DURABLE])), SEED, 5)) == []
        steps = st.lists(st.sampled_from([LIST, DURABLE, TRANSIENT]), min_size=1)
        (found,) = search(judge, steps, SEED, 20)
    assert found.program == [TRANSIENT]
    assert found.kind.startswith("PUT queues 201/400")


@pytest.fixture(scope="module", params=ORACLES)
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpJudge]:
    if ORACLES[request.param].installed() is None:
        pytest.skip(f"RabbitMQ {request.param} is not installed")
    with brokers(tmp_path_factory.mktemp("duel"), request.param) as judge:
        yield judge


@pytest.mark.verify
@pytest.mark.parametrize("surface", SURFACES)
def test_a_slice_of_the_programs_agrees_with_rabbitmq(judge: HttpJudge, surface: str) -> None:
    """The seed is fixed: that of the day would find what RabbitMQ does by chance, too."""
    before = judge.counts["requests"]
    found = [str(finding) for finding in search(judge, SURFACES[surface], SEED, PROGRAMS)]
    assert not found, "\n".join(found)
    assert judge.counts["requests"] > before
