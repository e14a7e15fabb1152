"""Class tx: what a channel publishes and settles takes effect at commit, all of it or none (spec 1.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from amqp_broker.errors import PreconditionFailed
from amqp_broker.session import channel as channels
from amqp_broker.session import publishing

if TYPE_CHECKING:
    from amqp_broker.broker.exchange import Exchange
    from amqp_broker.broker.queue import Queue
    from amqp_broker.message import Message
    from amqp_broker.session.channel import Channel, Delivery


class Transaction:
    """What waits for the commit: publishes (message, exchange, queues, mandatory), acks and rejects by tag.

    Of a reject the first is whether to requeue, and whether it is a failure.
    """

    def __init__(self) -> None:
        self.publishes: list[tuple[Message, Exchange, tuple[Queue, ...], bool]] = []
        self.acks: list[tuple[int, Delivery]] = []
        self.rejects: list[tuple[tuple[bool, bool], tuple[int, Delivery]]] = []

    def tags(self) -> list[int]:
        """Delivery tags that the commit will settle."""
        return [tag for tag, _ in (*self.acks, *(delivery for _, delivery in self.rejects))]

    def roll_back(self, channel: Channel) -> None:
        """What was settled is unacked again, under its tag; what was published never was."""
        restored = [*channel.unacked.items(), *self.acks, *(delivery for _, delivery in self.rejects)]
        channel.unacked = dict(sorted(restored, key=lambda item: item[0]))
        self.publishes.clear()
        self.acks.clear()
        self.rejects.clear()


def select(channel: Channel, method: commands.Tx.Select) -> None:
    if channel.mode == channels.CONFIRMING:
        raise PreconditionFailed("cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.mode = channels.TRANSACTIONAL
        channel.transaction = Transaction()
    channel.session.send(channel.number, commands.Tx.SelectOk())


def commit(channel: Channel, method: commands.Tx.Commit) -> None:
    transaction, session = _transaction(channel), channel.session
    # A new one first: what the commit delivers must not be mistaken for a part of it.
    channel.transaction = Transaction()
    is_complete = True
    for message, exchange, queues, mandatory in transaction.publishes:
        alive = tuple(queue for queue in queues if not queue.is_deleted)
        # It may have been declared anew meanwhile; RabbitMQ counts by name.
        exchange = channel.vhost.exchanges.get(exchange.name, exchange)
        channel.count_published(exchange, alive, mandatory and not queues)
        if not publishing.push(channel, message, alive, mandatory and not queues):
            is_complete = False
    for _, delivery in transaction.acks:
        channel.finish(delivery)
    channel.let_consumers_take(transaction.acks)
    for (requeue, has_failed), delivery_with_tag in transaction.rejects:
        channel.settle_rejected([delivery_with_tag], requeue, has_failed)
    if not is_complete:
        raise PreconditionFailed("partial tx completion")
    # commit-ok promises what a confirm does (rabbit_channel.erl, maybe_complete_tx).
    session.hold_for_work()
    session.send(channel.number, commands.Tx.CommitOk())


def rollback(channel: Channel, method: commands.Tx.Rollback) -> None:
    _transaction(channel).roll_back(channel)
    channel.session.send(channel.number, commands.Tx.RollbackOk())


def _transaction(channel: Channel) -> Transaction:
    if channel.transaction is None:
        raise PreconditionFailed("channel is not transactional")
    return channel.transaction
