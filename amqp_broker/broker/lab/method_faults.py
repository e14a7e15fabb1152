"""Faults of a method that a client sends on a channel, such as queue.declare: it is not carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.amqp.methods import name_of
from amqp_broker.broker.admin import globs
from amqp_broker.broker.lab.fault_rules import can_hit, fits

if TYPE_CHECKING:
    from amqp_broker.broker.lab.fault_rules import Rule
    from amqp_broker.session.channel.channel import Channel

# Fields with the name of an exchange: of a binding between exchanges, both.
_EXCHANGES: Final = ("exchange", "source", "destination")


class SentMethod(NamedTuple):
    """A method of a client: the names of its connection, vhost and user, and what else a rule can match."""

    connection: str
    vhost: str
    user: str
    name: str
    exchanges: tuple[str, ...]
    routing_keys: tuple[str, ...]
    queues: tuple[str, ...]

    def fits(self, rule: Rule) -> bool:
        """Return whether the names match; a rule that wants one that the method does not have does not match."""
        return (
            can_hit(rule.action, rule.method, self.name)
            and _is_any(rule.exchange and globs.exchange_name(rule.exchange), self.exchanges)
            and _is_any(rule.routing_key, self.routing_keys)
            and _is_any(rule.queue, self.queues)
        )


def before_method(channel: Channel, method: Any) -> None:
    """Raise what a rule says that hits the method; it has no effect then."""
    session, injector = channel.session, channel.session.broker.faults
    sent = _sent(channel, method)
    injector.methods.append(sent)

    def matches(rule: Rule) -> bool:
        return rule.matches_connection(session) and sent.fits(rule)

    for rule in injector.hits(injector.on_method, matches, one=True):
        injector.report([rule], session, None, more={"method": sent.name})
        session.faults.raise_for(rule)


def _sent(channel: Channel, method: Any) -> SentMethod:
    session, name = channel.session, name_of(type(method))
    return SentMethod(
        session.name,
        channel.vhost.name,
        "" if session.user is None else session.user.name,
        name,
        tuple(getattr(method, name) for name in _EXCHANGES if hasattr(method, name)),
        (method.routing_key,) if hasattr(method, "routing_key") else (),
        _queues_of(channel, name, method),
    )


def _queues_of(channel: Channel, name: str, method: Any) -> tuple[str, ...]:
    """Return the name of the queue that a method is about, if it is about one."""
    if name == "basic.cancel":
        consumer = channel.consumers.get(method.consumer_tag)
        return () if consumer is None else (consumer.queue.name,)
    if not hasattr(method, "queue"):
        return ()
    # Without a name, it is the queue that the channel has declared last.
    return (method.queue if method.queue or name == "queue.declare" else channel.last_queue,)


def _is_any(pattern: str | None, names: tuple[str, ...]) -> bool:
    return pattern is None or any(fits(pattern, name) for name in names)
