"""Random numbers that a seed determines, on each version of Python (splitmix64; Steele, Lea and Flood 2014)."""

from __future__ import annotations

from typing import Final

_MASK: Final = 2**64 - 1
# Octets of a seed that the broker chooses.
SEED_BYTES: Final = 4


class Dice:
    """A source of random numbers. The same seed gives the same numbers."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        """Return the next number, from 0 to `limit` - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % limit
