"""A broker inside of a test's process, and a pytest plugin around it.

    from amqp_broker.testing import EmbeddedBroker

    with EmbeddedBroker() as broker:
        connect(broker.url)

Importing this package, which pytest does in every project where the broker is installed, imports nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amqp_broker.testing.embedded import EmbeddedBroker
    from amqp_broker.testing.vhosts import LeakWarning

__all__ = ["EmbeddedBroker", "LeakWarning"]


def __getattr__(name: str) -> Any:
    if name == "EmbeddedBroker":
        from amqp_broker.testing.embedded import EmbeddedBroker

        return EmbeddedBroker
    if name == "LeakWarning":
        from amqp_broker.testing.vhosts import LeakWarning

        return LeakWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
