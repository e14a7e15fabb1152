"""Resetting a broker or a vhost to its initial state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.journal_entries import FEATURE_FLAG
from amqp_broker.broker.runtime_parameters import OPERATOR_POLICY, VHOST_LIMITS
from amqp_broker.broker.scheduling.portions import Steps, finished

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.vhost import VHost

REASON: Final = "the broker is reset"


def reset_vhost(vhost: VHost) -> None:
    """Close all connections to a vhost, and delete its contents, faults and advice.

    Permissions and metadata stay.
    """
    finished(resetting_vhost(vhost))


def resetting_vhost(vhost: VHost) -> Steps[None]:
    """Do `reset_vhost` in steps."""
    broker = vhost.broker
    broker.faults.clear(vhost.name)
    with vhost.down():
        yield from broker.closing(vhost.connections, REASON)
        vhost.tracing.stop()
        vhost.tracing.stop_recording()
        yield from vhost.removing_queues()
        for name in [name for name in vhost.exchanges if name and not name.startswith("amq.")]:
            # An auto-delete exchange may have been deleted with another.
            if (exchange := vhost.exchanges.get(name)) is not None:
                yield from vhost.deletions.of_exchange(exchange)
            yield
        yield from _clearing_settings(vhost)


def _clearing_settings(vhost: VHost) -> Steps[None]:
    """Delete what is left in a vhost without queues and exchanges of its own."""
    broker = vhost.broker
    for exchange in list(vhost.exchanges.values()):
        for binding in list(exchange.bindings.values()):
            vhost.unbind(binding)
            yield
    for policy in list(vhost.policies):
        yield from vhost.policies.clearing(policy.name)
    for parameter in list(vhost.parameters):
        vhost.parameters.clear(parameter.component, parameter.name)
        yield
    if vhost.is_partial:
        vhost.is_partial = False
        vhost.remember()
    log = broker.event_logs.of(vhost)
    if log is not None:
        log.clear()
    broker.advice.clear(vhost.name)
    assert not any(parameter.component in (VHOST_LIMITS, OPERATOR_POLICY) for parameter in vhost.parameters)


def reset(broker: Broker) -> None:
    """Delete everything except the default vhost, which is emptied, and the default user."""
    finished(resetting(broker))


def resetting(broker: Broker) -> Steps[None]:
    """Do `reset` in steps."""
    settings = broker.settings
    broker.faults.clear()
    yield from broker.closing(broker.connections, REASON)
    for name, vhost in list(broker.vhosts.items()):
        yield from resetting_vhost(vhost)
        vhost.set_metadata(Metadata())
        if name != settings.default_vhost and broker.vhosts.get(name) is vhost:
            broker.delete_vhost(name)
    for name in list(broker.users):
        if name != settings.default_user:
            broker.users.delete(name)
    for name in [name for name, _ in broker.global_parameters if not name.startswith("internal")]:
        broker.global_parameters.clear(name)
    while broker.feature_flags:
        broker.journal.undefine((FEATURE_FLAG, broker.feature_flags.pop()))
    broker.add_defaults()
    broker.vhosts[settings.default_vhost].set_metadata(Metadata("Default virtual host"))
