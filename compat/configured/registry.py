"""The registry of the configured scenarios."""

from __future__ import annotations

from collections.abc import Callable

from amqp_broker.conformance.lab import Play, Scenario, add, register

# Scenarios that need a configuration of their own, or change the state of the whole broker.
CONFIGURED: dict[str, Scenario] = {}


def configured_scenario(play: Play) -> Play:
    """Register a function whose module has a configuration."""
    return register(play, CONFIGURED)


def shared_scenario(*areas: str) -> Callable[[Play], Play]:
    """Register a function in several areas, each with its own configuration."""

    def register_in_each(play: Play) -> Play:
        for area in areas:
            add(Scenario(play.__name__, area, play), f"{area}/{play.__name__}", CONFIGURED)
        return play

    return register_in_each
