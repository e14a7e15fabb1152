"""Former faults that users of RabbitMQ had reported. Each function brings one back into the broker's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from amqp_broker.amqp.errors import AccessRefused
from amqp_broker.broker.queues.quorum import QuorumQueue
from amqp_broker.broker.queues.quorum_backlog import QuorumBacklog
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.session.channel.channel import Channel
from amqp_broker.session.methods import basic_publish, consuming, topology_methods, transactions
from amqp_broker.session.methods.transactions import Transaction

Plant = Callable[[pytest.MonkeyPatch], None]
UNMENDED: dict[str, Plant] = {}


def unmend(function: Plant) -> Plant:
    UNMENDED[function.__name__] = function
    return function


@unmend
def declaring_renews_the_lease_of_a_quorum_queue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuorumQueue, "is_used_by_declaring", True)


@unmend
def a_transaction_fails_at_a_full_quorum_queue(patch: pytest.MonkeyPatch) -> None:
    def publishing(channel: Channel, transaction: Transaction) -> Steps[bool]:
        is_complete = True
        for message, _, queues, mandatory in transaction.publishes:
            alive = tuple(queue for queue in queues if not queue.is_deleted)
            is_returned = mandatory and not queues
            is_complete &= basic_publish.push(channel, message, alive, is_returned, channel.publisher)
            yield
        return is_complete

    patch.setattr(transactions, "_publishing", publishing)


@unmend
def a_message_does_not_expire_behind_a_higher_priority(patch: pytest.MonkeyPatch) -> None:
    original = QuorumBacklog.__init__

    def begin(backlog: QuorumBacklog, *arguments: Any, **options: Any) -> None:
        original(backlog, *arguments, **options)
        backlog.expires_by_level = False

    patch.setattr(QuorumBacklog, "__init__", begin)


@unmend
def a_consumer_that_resumes_forgets_what_it_has_not_settled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(consuming, "succeed", lambda channel, consumer: None)
    patch.setattr(QuorumQueue, "keep_leaver", lambda queue, consumer: None)


@unmend
def a_passive_declare_asks_for_the_permission_to_read(patch: pytest.MonkeyPatch) -> None:
    def require_any(channel: Channel, kind: str, name: str) -> None:
        for action in ("configure", "write"):
            try:
                topology_methods.require(channel, action, kind, name)
            except AccessRefused:
                continue
            return
        topology_methods.require(channel, "read", kind, name)

    patch.setattr(topology_methods, "_require_any", require_any)
