"""All scenarios: importing this package registers them. A new file is added here. A scenario is short:

    @scenario
    def a_passive_declare_of_a_missing_queue_is_refused(lab: Lab) -> None:
        lab.channel().call(Queue.Declare, queue=lab.name("q"), passive=True)

`call` sends a method and waits for the answer, `expect` waits for more; all is recorded. That nothing arrives is shown
by `sync`, a round trip, never by waiting. Names come from `lab.name`. Sleep never.
"""

from amqp_broker.conformance.scenarios import (
    arguments,
    at_least_once,
    catalogue,
    channels,
    clients,
    confirming,
    connections,
    consumer_timeouts,
    consuming,
    dead_lettering,
    delayed_retries,
    exchange_plugins,
    exchanges,
    frames,
    handshake,
    lengths,
    priorities,
    properties,
    publishing,
    queues,
    quorum,
    quorum_lengths,
    quorum_overflows,
    quorum_returns,
    replies,
    routing,
    service_buses,
    settling,
    sharing,
    single_active,
    streams,
    ttl,
)

__all__ = [
    "arguments",
    "at_least_once",
    "catalogue",
    "channels",
    "clients",
    "confirming",
    "connections",
    "consumer_timeouts",
    "consuming",
    "dead_lettering",
    "delayed_retries",
    "exchange_plugins",
    "exchanges",
    "frames",
    "handshake",
    "lengths",
    "priorities",
    "properties",
    "publishing",
    "queues",
    "quorum",
    "quorum_lengths",
    "quorum_overflows",
    "quorum_returns",
    "replies",
    "routing",
    "service_buses",
    "settling",
    "sharing",
    "single_active",
    "streams",
    "ttl",
]
