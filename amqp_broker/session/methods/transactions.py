"""Class tx: publishes and settlements of a channel take effect together, at the commit (spec 1.9)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from pamqp import commands

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed, ResourceError
from amqp_broker.broker.lab import delivery_faults, publish_faults
from amqp_broker.broker.queues.dead_letter_reasons import MAXLEN
from amqp_broker.broker.queues.leaving_reasons import COMMIT_FAILED, ROLLBACK
from amqp_broker.broker.queues.reply import ReplyQueue
from amqp_broker.broker.scheduling.portions import WORK_MAX, Steps, finished
from amqp_broker.session.channel.acks import acking_by_consumer
from amqp_broker.session.channel.returning import settling
from amqp_broker.session.methods import basic_publish
from amqp_broker.session.methods.basic_publish import PUBLISH_WORK

if TYPE_CHECKING:
    from amqp_broker.amqp.message import Message
    from amqp_broker.broker.clients.client_channel import Delivery
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.broker.lab.publish_faults import Discard
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.session.channel.channel import Channel
    from amqp_broker.session.channel.unacked import Duplicate, Taken

# Publishes and settlements that are committed at once; more are committed in portions.
COMMITTED_MAX: Final = 1000


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

    @property
    def is_long(self) -> bool:
        """True if the commit is done in portions: its parts are many, or may have many targets."""
        rejected_count = sum(len(deliveries) for _, deliveries in self.rejects)
        return (
            len(self.publishes) + len(self.acks) + rejected_count > COMMITTED_MAX
            or sum(len(queues) for _, _, queues, _ in self.publishes) > COMMITTED_MAX
            or sum(len(deliveries) for (requeue, _), deliveries in self.rejects if not requeue) > 1
        )

    def tags(self) -> list[int]:
        """Return the delivery tags that the commit will settle, those of duplicates among them."""
        return [*[tag for tag, _ in self.settled()], *self.duplicates]

    def roll_back(self, channel: Channel, reason: str) -> None:
        """Make settled deliveries unacked again, under their tags, and forget the publishes."""
        report_lost(channel, self.publishes, reason)
        unacked = channel.unacked
        unacked.put_back(self.settled())
        channel.session.spend(len(unacked.deliveries))
        if unacked.deadlines is not None:
            unacked.deadlines.resume()
        unacked.put_back_duplicates(self.duplicates)
        self.publishes.clear()
        self.acks.clear()
        self.rejects.clear()
        self.duplicates.clear()


def report_lost(channel: Channel, publishes: Iterable[tuple[Message, Any, Any, bool]], reason: str) -> None:
    """Report to the trace that publishes of a transaction go nowhere."""
    trace = channel.vhost.trace
    if trace is not None:
        for publish in publishes:
            trace.rolled_back(channel.session, channel.number, publish[0], reason)


def select(channel: Channel, method: commands.Tx.Select) -> None:
    if channel.confirms is not None:
        raise PreconditionFailed("cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.transaction = Transaction()
    channel.session.send(channel.number, commands.Tx.SelectOk())


def commit(channel: Channel, method: commands.Tx.Commit) -> Steps[None] | None:
    transaction = _transaction(channel)
    # The new transaction begins first, so that it contains what happens during the commit.
    channel.transaction = Transaction()
    if transaction.is_long:
        return _commit_in_portions(channel, transaction)
    with channel.session.broker.dead_letters_held():
        is_complete, fault = finished(_committing(channel, transaction))
    if fault is not None:
        channel.session.faults.raise_for(fault)
    if not is_complete:
        raise _partial()
    # commit-ok promises what a confirm does (rabbit_channel.erl, maybe_complete_tx).
    channel.session.gate.hold_for_messages()
    return None


def _commit_in_portions(channel: Channel, transaction: Transaction) -> Steps[None]:
    """Commit a large transaction. It becomes safe as a whole."""
    session, steps = channel.session, _committing(channel, transaction)
    journal = session.broker.journal
    journal.open_works += 1
    fault: Rule | None = None
    is_complete = is_done = False
    try:
        while not is_done:
            with session.broker.dead_letters_held():
                try:
                    next(steps)
                except StopIteration as end:
                    (is_complete, fault), is_done = end.value, True
            # commit-ok waits for the whole transaction, which is in one batch.
            session.gate.hold_for_messages()
            yield
    finally:
        journal.open_works -= 1
    if fault is not None:
        session.faults.raise_for(fault)
    if not is_complete and session.channels.get(channel.number) is channel:
        raise _partial()


def _committing(channel: Channel, transaction: Transaction) -> Steps[tuple[bool, Rule | None]]:
    """Do all parts of a transaction. Return whether the queues took all messages, and the fault instead of a reply.

    The caller carries the fault out.
    """
    session, faults, fault = channel.session, channel.session.broker.faults, None
    is_complete = yield from _publishing(channel, transaction)
    acks: Taken = sorted(transaction.acks, key=itemgetter(0))
    if faults.on_ack:
        acks = delivery_faults.effective_acks(channel, acks)
    yield from acking_by_consumer(channel, acks)
    channel.release_duplicates(transaction.duplicates)
    is_answered = is_complete and session.channels.get(channel.number) is channel
    if is_answered and faults.on_publish:
        fault = publish_faults.end_of_commit(
            channel, ((message, queues) for message, _, queues, _ in transaction.publishes)
        )
    if is_answered and fault is None:
        # It leaves before the messages that come back are delivered again.
        session.send(channel.number, commands.Tx.CommitOk())
    for (requeue, has_failed), deliveries in transaction.rejects:
        yield from settling(channel, deliveries, requeue=requeue, has_failed=has_failed)
    return is_complete, fault


def _partial() -> PreconditionFailed:
    return PreconditionFailed("partial tx completion")


def _publishing(channel: Channel, transaction: Transaction) -> Steps[bool]:
    """Publish the messages of a transaction; return False if a queue refused one and the commit fails.

    In RabbitMQ a channel learns between two methods only that a quorum queue refuses it or takes publishes again. So
    the queue takes all messages of a commit or none. A message that it refuses does not fail the commit, even where
    another queue refuses it as well (rabbit_channel.erl, tx.commit and maybe_complete_tx). A classic queue that was
    deleted refuses its messages. Raise ResourceError for a deleted queue where the version of RabbitMQ does.
    """
    broker, by_name, trace = channel.session.broker, channel.session.broker.profile.commits_by_name, channel.vhost.trace
    destinations = set(chain.from_iterable(map(itemgetter(2), transaction.publishes)))
    refusing = {queue for queue in destinations if queue.refuses(channel.publisher)}
    is_complete = True
    for number, (message, exchange, queues, mandatory) in enumerate(transaction.publishes):
        try:
            targets = _found(channel, message, queues) if by_name else _alive(channel, queues)
        except ResourceError:
            report_lost(channel, transaction.publishes[number:], COMMIT_FAILED)
            raise
        is_returned = mandatory and not (targets if by_name else queues)
        rules = (
            publish_faults.before_commit(channel, message, targets) if mandatory and broker.faults.on_publish else []
        )
        discard = _discarded(rules, targets, exchange, message) if rules else None
        if discard is not None:
            targets, is_returned = (), False
        # The exchange may have been declared anew; RabbitMQ counts by name.
        exchange = channel.vhost.exchanges.get(exchange.name, exchange)
        is_counted_returned = is_returned or bool(rules and not targets)
        channel.count_published(exchange, message.routing_key, targets, is_counted_returned)
        if trace is not None:
            trace.committed(channel.session, channel.number, message, targets, mandatory, discard)
            for refused in refusing.intersection(targets):
                trace.given_up(refused, message, MAXLEN, is_refused=True)
        if rules:
            publish_faults.report(channel, rules, message)
        taking = tuple(queue for queue in targets if queue not in refusing)
        is_taken = basic_publish.push(channel, message, taking, is_returned, publisher=None)
        if not is_taken and len(taking) == len(targets):
            is_complete = False
        if not by_name and any(queue.type == "classic" for queue in _gone(queues)):
            is_complete = False
        broker.work += PUBLISH_WORK
        if broker.work >= WORK_MAX:
            yield
    return is_complete


def _discarded(rules: list[Rule], targets: tuple[Queue, ...], exchange: Exchange, message: Message) -> Discard | None:
    return publish_faults.discard(rules, lambda: targets, exchange, message.properties().headers or {})


def _found(channel: Channel, message: Message, queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
    """Return the queues that have the names of a publish's queues at the commit."""
    if not queues and not message.address.exchange:
        found = channel.vhost.queues.get(message.address.routing_key)
        return () if found is None else (found,)
    there = [channel.vhost.queues.get(queue.name) if queue.is_deleted else queue for queue in queues]
    return tuple(queue for queue in there if queue is not None)


def _alive(channel: Channel, queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
    """Return the queues of a publish that are left at the commit. Raise ResourceError where one must be."""
    for queue in _gone(queues) if channel.session.broker.profile.commits_need_queues else ():
        if queue.name not in channel.vhost.queues:
            vhost, name = fields.erlang_term(channel.vhost.name), fields.erlang_term(queue.name)
            # Erlang breaks the line and indents so.
            resource = f"{{resource,{vhost},queue,\n{' ' * 35}{name}}}"
            raise ResourceError(f"failed to deliver message: {{not_found,\n{' ' * 31}{resource}}}")
    return tuple(queue for queue in queues if not queue.is_deleted)


def _gone(queues: tuple[Queue, ...]) -> list[Queue]:
    """Return the deleted queues. Those of direct replies are not among them: they may go with their channel."""
    return [queue for queue in queues if queue.is_deleted and not isinstance(queue, ReplyQueue)]


def rollback(channel: Channel, method: commands.Tx.Rollback) -> None:
    _transaction(channel).roll_back(channel, ROLLBACK)
    channel.session.send(channel.number, commands.Tx.RollbackOk())


def _transaction(channel: Channel) -> Transaction:
    if channel.transaction is None:
        raise PreconditionFailed("channel is not transactional")
    return channel.transaction
