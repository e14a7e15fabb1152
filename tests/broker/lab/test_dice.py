from __future__ import annotations

from collections import Counter

from amqp_broker.broker.lab.dice import Dice


def test_a_seed_determines_the_numbers() -> None:
    # The first outputs of splitmix64 with the seed 1234567, as published with the algorithm.
    dice = Dice(1234567)
    assert [dice.below(2**64) for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_the_numbers_are_spread_evenly() -> None:
    dice = Dice(1)
    counts = Counter(dice.below(4) for _ in range(4000))
    assert set(counts) == {0, 1, 2, 3}
    assert min(counts.values()) > 900
