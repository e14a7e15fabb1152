"""Class tx: publishes and settlements of a channel take effect together, at the commit (spec 1.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.session import basic_publish
from amqp_broker.session import channel as channels

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.session.channel import Channel, Duplicate


class Transaction:
    """Publishes and settlements that wait for the commit.

    A publish is (message, exchange, queues, mandatory). A reject is the pair (requeue, has_failed), and the deliveries
    of one method.
    """

    def __init__(self) -> None:
        self.publishes: list[tuple[Message, Exchange, tuple[Queue, ...], bool]] = []
        self.acks: list[tuple[int, Delivery]] = []
        self.rejects: list[tuple[tuple[bool, bool], list[tuple[int, Delivery]]]] = []
        # Settled duplicates, by tag.
        self.duplicates: dict[int, Duplicate] = {}

    def settled(self) -> list[tuple[int, Delivery]]:
        """Return the deliveries that the commit will settle, with their tags."""
        return [*self.acks, *[delivery for _, deliveries in self.rejects for delivery in deliveries]]

    def tags(self) -> list[int]:
        """Return the delivery tags that the commit will settle, those of duplicates among them."""
        return [*[tag for tag, _ in self.settled()], *self.duplicates]

    def roll_back(self, channel: Channel) -> None:
        """Make settled deliveries unacked again, under their tags, and forget the publishes."""
        channel.put_back(self.settled())
        channel.session.spend(len(channel.unacked))
        if channel.deadlines is not None:
            channel.deadlines.resume()
        if self.duplicates:
            channel.duplicates = dict(sorted([*(channel.duplicates or {}).items(), *self.duplicates.items()]))
        self.publishes.clear()
        self.acks.clear()
        self.rejects.clear()
        self.duplicates.clear()


def select(channel: Channel, method: commands.Tx.Select) -> None:
    if channel.mode == channels.CONFIRMING:
        raise PreconditionFailed("cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.mode = channels.TRANSACTIONAL
        channel.transaction = Transaction()
    channel.session.send(channel.number, commands.Tx.SelectOk())


def commit(channel: Channel, method: commands.Tx.Commit) -> None:
    transaction, session = _transaction(channel), channel.session
    # The new transaction begins first, so that it contains what happens during the commit.
    channel.transaction = Transaction()
    with session.broker.dead_letters_held():
        is_complete = _publish(channel, transaction)
        for _, delivery in transaction.acks:
            channel.finish(delivery)
        channel.release_prefetch(transaction.acks)
        channel.release_duplicates(transaction.duplicates)
        if is_complete:
            # It leaves before the messages that come back are delivered again.
            session.send(channel.number, commands.Tx.CommitOk())
        for (requeue, has_failed), deliveries in transaction.rejects:
            channel.settle_rejected(deliveries, requeue, has_failed)
    if not is_complete:
        raise PreconditionFailed("partial tx completion")
    # commit-ok promises what a confirm does (rabbit_channel.erl, maybe_complete_tx).
    session.gate.hold_for_messages()


def _publish(channel: Channel, transaction: Transaction) -> bool:
    """Publish the messages of a transaction; return False if a queue refused one and the commit fails.

    In RabbitMQ a channel learns between two methods only that a quorum queue refuses it or takes publishes again. So
    the queue takes all messages of a commit or none. A message that it refuses does not fail the commit, even where
    another queue refuses it as well (rabbit_channel.erl, tx.commit and maybe_complete_tx).
    """
    targets = {queue for _, _, queues, _ in transaction.publishes for queue in queues}
    refusing = {queue for queue in targets if queue.refuses(channel.publisher)}
    is_complete = True
    for message, exchange, queues, mandatory in transaction.publishes:
        alive = tuple(queue for queue in queues if not queue.is_deleted)
        # The exchange may have been declared anew; RabbitMQ counts by name.
        exchange = channel.vhost.exchanges.get(exchange.name, exchange)
        channel.count_published(exchange, alive, mandatory and not queues)
        taking = tuple(queue for queue in alive if queue not in refusing)
        is_taken = basic_publish.push(channel, message, taking, mandatory and not queues, publisher=None)
        if not is_taken and len(taking) == len(alive):
            is_complete = False
    return is_complete


def rollback(channel: Channel, method: commands.Tx.Rollback) -> None:
    _transaction(channel).roll_back(channel)
    channel.session.send(channel.number, commands.Tx.RollbackOk())


def _transaction(channel: Channel) -> Transaction:
    if channel.transaction is None:
        raise PreconditionFailed("channel is not transactional")
    return channel.transaction
