"""A broker in the test process: `EmbeddedBroker`, and the pytest plugin around it.

    from amqp_broker.testing import EmbeddedBroker

    with EmbeddedBroker() as broker:
        connect(broker.url)

Here are the broker and vhosts of a test, with their clock, faults, advice, event log and captures, and the broker that
tests reach at a URL. The server itself is in `server/`, the rules of faults and advice in `broker/lab/`. Read
`embedded_broker.py` first. pytest imports this package in every project that has it installed, so it imports nothing.

A host runs one server after the other on a loop in a thread, and asks it questions there between two reads. An
`EmbeddedBroker` owns a host, so a forgotten broker stops with its last reference. A vhost waits a tenth of a second
for its clients' connections to end before it reports them as leaks.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amqp_broker.broker.observe.matching import Criteria
    from amqp_broker.testing.decorator import with_vhost
    from amqp_broker.testing.embedded_broker import EmbeddedBroker
    from amqp_broker.testing.embedded_vhost import LeakWarning, UnusedFaultWarning

__all__ = ["Criteria", "EmbeddedBroker", "LeakWarning", "UnusedFaultWarning", "with_vhost"]

_MODULES = {
    "Criteria": "amqp_broker.broker.observe.matching",
    "EmbeddedBroker": "amqp_broker.testing.embedded_broker",
    "LeakWarning": "amqp_broker.testing.embedded_vhost",
    "UnusedFaultWarning": "amqp_broker.testing.embedded_vhost",
    "with_vhost": "amqp_broker.testing.decorator",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
