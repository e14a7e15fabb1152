"""Preferences of a world: each seed does some things often and others rarely."""

from __future__ import annotations

from random import Random

QUEUES = [f"q{number}" for number in range(6)]
# How likely a thing has a setting.
SETTINGS = {
    "message-ttl": [0.05, 0.3, 0.6],
    "expiration": [0.05, 0.3, 0.5],
    "expires": [0.02, 0.1, 0.5],
    "dead-letter-exchange": [0.2, 0.5, 0.8],
    "max-length": [0.1, 0.3, 0.5],
    "max-length-bytes": [0.05, 0.1, 0.3],
    "overflow": [0.1, 0.4, 0.7],
    "consumer-timeout": [0.05, 0.1, 0.5],
    "delivery-limit": [0.1, 0.3, 0.6],
    "single-active-consumer": [0.05, 0.1, 0.4],
}
KINDS = ["plain", "classic", "classic", "priority", "quorum"]


class Taste:
    """Names of queues, kinds of queues, and how likely each setting is."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.queues = QUEUES[: chance.choice([3, 4, 6])]
        self.kinds = chance.choice([KINDS, ["plain", "classic"], ["priority"], ["quorum"], ["classic", "quorum"]])
        self.dead_letters_to_queues = chance.choice([0.3, 0.6, 0.9])
        self._likely = {name: chance.choice(options) for name, options in SETTINGS.items()}

    def likes(self, setting: str) -> bool:
        """Return whether something has this setting now."""
        return self.chance.random() < self._likely[setting]
