"""Random applications, a few hundred steps each: after every step the broker is as the model says."""

from __future__ import annotations

import pytest

from tests.simulation.simulation import Simulation

STEPS = 300


@pytest.mark.parametrize("seed", range(12))
def test_everything_is_as_it_must_be_after_every_step(seed: int) -> None:
    Simulation(seed).run(STEPS)


@pytest.mark.parametrize("seed", range(6))
def test_faults_do_what_their_rules_say_and_nothing_else(seed: int) -> None:
    Simulation(seed, has_faults=True).run(STEPS)


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [Simulation(1) for _ in range(2)]
    for run in runs:
        for _ in range(STEPS):
            run.step()
    one, other = runs
    assert one.story == other.story
    assert one.numbers == other.numbers
    assert one.lab.now == other.lab.now
    ready = [{name: list(map(repr, queue.ready)) for name, queue in run.topology.queues.items()} for run in runs]
    assert ready[0] == ready[1]
    assert any(ready[0].values())
