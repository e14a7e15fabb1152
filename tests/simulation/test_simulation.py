"""Random applications, a few hundred steps each: after every step the broker is as the model says."""

from __future__ import annotations

import pytest

from tests.simulation.simulation import Simulation

STEPS = 300


@pytest.mark.parametrize("seed", range(40))
def test_everything_is_as_it_must_be_after_every_step(seed: int) -> None:
    Simulation(seed).run(STEPS)
