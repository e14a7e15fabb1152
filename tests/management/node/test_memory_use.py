from __future__ import annotations

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.node.memory_use import (
    BINDING_BYTES,
    CHANNEL_BYTES,
    CONNECTION_BYTES,
    EXCHANGE_BYTES,
    memory_use,
)
from tests.peer import Lab

USED = 100_000_000
AT_START = 30_000_000


def use(lab: Lab, used: int = USED) -> dict[str, int]:
    return finished(memory_use(lab.broker, used, AT_START))


def grown(lab: Lab, before: dict[str, int]) -> dict[str, int]:
    """Return the categories that have grown, and by how much, but for the rest."""
    now = use(lab)
    changes = {name: now.get(name, 0) - before.get(name, 0) for name in (*before, *now) if name != "other_proc"}
    return {name: change for name, change in changes.items() if change}


def test_the_categories_are_the_memory_that_is_used() -> None:
    lab = Lab()
    lab.connect()
    found = use(lab)
    assert sum(found.values()) == USED
    assert found["code"] == AT_START


@pytest.mark.parametrize(
    ("arguments", "category"),
    [({}, "queue_procs"), ({"x-max-priority": 5}, "queue_procs"), ({"x-queue-type": "quorum"}, "quorum_queue_procs")],
)
def test_messages_count_for_the_type_of_their_queue(arguments: FieldTable, category: str) -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Queue.Declare(queue="q", durable=True, arguments=arguments))
    before = use(lab)
    for _ in range(100):
        peer.publish("q", b"x" * 10_000)
    changes = grown(lab, before)
    assert changes.keys() == {category}
    assert 1_000_000 <= changes[category] <= 1_100_000


def test_messages_of_a_stream_are_on_the_disk() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Queue.Declare(queue="s", durable=True, arguments={"x-queue-type": "stream"}))
    before = use(lab)
    assert before["stream_queue_procs"] > 0
    peer.publish("s", b"x" * 10_000)
    assert grown(lab, before) == {}


def test_unacked_messages_count_for_their_channel() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.consume("q", no_ack=False)
    before = use(lab)
    for _ in range(100):
        peer.publish("q", b"x" * 10_000)
    changes = grown(lab, before)
    assert changes.keys() == {"connection_channels"}
    assert 1_000_000 <= changes["connection_channels"] <= 1_100_000


def test_other_objects_have_a_size_of_their_own() -> None:
    lab = Lab()
    peer = lab.connect()
    before = use(lab)
    peer.call(commands.Exchange.Declare(exchange="e", exchange_type="topic"))
    peer.call(commands.Exchange.Bind(destination="amq.topic", source="e", routing_key="k"))
    lab.connect()
    assert grown(lab, before) == {
        "metadata_store": EXCHANGE_BYTES + BINDING_BYTES,
        "connection_readers": CONNECTION_BYTES,
        "connection_channels": CHANNEL_BYTES,
    }


def test_events_of_a_log_count_as_those_of_a_plugin() -> None:
    lab = Lab()
    peer = lab.connect()
    log = lab.broker.event_logs.start(lab.vhost)
    before = use(lab)
    peer.publish("none", b"x" * 10_000)
    assert grown(lab, before) == {"plugins": log.held_bytes}


def test_estimates_are_never_more_than_the_memory_that_is_used() -> None:
    lab = Lab()
    peer = lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    for _ in range(100):
        peer.publish("q", b"x" * 10_000)
    used = AT_START + 500_000
    found = use(lab, used)
    assert (sum(found.values()), found["code"]) == (used, AT_START)
    assert 400_000 < found["queue_procs"] < 500_000
    assert set(use(lab, 0).values()) == {0}


def test_many_objects_are_looked_at_in_several_steps() -> None:
    lab = Lab()
    peer = lab.connect()
    for number in range(120):
        peer.call(commands.Queue.Declare(queue=f"q{number}"))
    assert len(list(memory_use(lab.broker, USED, AT_START))) >= 2
