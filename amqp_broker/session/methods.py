"""The only list of methods that clients may send, and who handles each.

Which of class connection are legal in which state is `protocol.connection.TRANSITIONS`; a channel has no states but
open: what comes before channel.open or after an error never gets here. basic.publish, ack, nack and reject are
recognised on the hot path (`Session._run`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pamqp import base, commands

from amqp_broker.protocol.methods import AccessRequest
from amqp_broker.session import channel, consuming, handshake, topology, transactions

Handler = Callable[[Any, Any], None]

CONNECTION_METHODS: Final[dict[type[base.Frame], Handler]] = {
    commands.Connection.StartOk: handshake.start_ok,
    commands.Connection.SecureOk: handshake.secure_ok,
    commands.Connection.TuneOk: handshake.tune_ok,
    commands.Connection.Open: handshake.open_,
    commands.Connection.UpdateSecret: handshake.update_secret,
    commands.Connection.Close: handshake.close,
}

CHANNEL_METHODS: Final[dict[type[base.Frame], Handler]] = {
    AccessRequest: channel.access_request,
    commands.Channel.Flow: channel.flow,
    commands.Channel.Close: channel.close,
    commands.Exchange.Declare: topology.exchange_declare,
    commands.Exchange.Delete: topology.exchange_delete,
    commands.Exchange.Bind: topology.exchange_bind,
    commands.Exchange.Unbind: topology.exchange_unbind,
    commands.Queue.Declare: topology.queue_declare,
    commands.Queue.Bind: topology.queue_bind,
    commands.Queue.Unbind: topology.queue_unbind,
    commands.Queue.Purge: topology.queue_purge,
    commands.Queue.Delete: topology.queue_delete,
    commands.Basic.Qos: consuming.qos,
    commands.Basic.Consume: consuming.consume,
    commands.Basic.Cancel: consuming.cancel,
    commands.Basic.Get: consuming.get,
    commands.Basic.Recover: consuming.recover,
    commands.Basic.RecoverAsync: consuming.recover_async,
    commands.Confirm.Select: channel.confirm_select,
    commands.Tx.Select: transactions.select,
    commands.Tx.Commit: transactions.commit,
    commands.Tx.Rollback: transactions.rollback,
}
