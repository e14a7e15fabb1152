"""Changes of the topology that AMQP and HTTP share."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.errors import AccessRefused, PreconditionFailed, ResourceLocked
from amqp_broker.broker.admin.access import Permission, User
from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from amqp_broker.broker.operations import authorized
from amqp_broker.broker.operations.authorized import NamedBinding
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.broker.vhost import VHost
from tests.peer import Lab


class Hand:
    """A user with permissions on what starts with `m`, except to read, in vhost "/"."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.vhost: VHost = self.lab.vhost
        self.guest: User = self.lab.broker.users["guest"]
        self.user = self.lab.broker.users.add("u", "u")
        self.lab.broker.users.set_permission(self.user, "/", Permission("^m", "^m", "^r"))

    def exchange(self, name: str, kind: str = "direct", **arguments: Any) -> Any:
        return authorized.declare_exchange(self.user, self.vhost, ExchangeDeclaration(name, kind, arguments))

    def queue(self, name: str, **arguments: Any) -> Any:
        table = {key.replace("_", "-"): value for key, value in arguments.items()}
        return authorized.declare_queue(self.user, self.vhost, QueueDeclaration(name, table), None)


def test_the_type_of_an_exchange_is_checked_before_permissions() -> None:
    hand = Hand()
    with pytest.raises(PreconditionFailed):
        hand.exchange("other", "zork")
    with pytest.raises(AccessRefused, match="configure access to exchange 'other'"):
        hand.exchange("other")
    assert hand.exchange("m").name == "m"


def test_declaring_an_alternate_exchange_requires_further_permissions() -> None:
    with pytest.raises(AccessRefused, match="read access to exchange 'm'"):
        Hand().exchange("m", **{"alternate-exchange": "m2"})


def test_declaring_a_dead_letter_exchange_requires_further_permissions() -> None:
    hand = Hand()
    with pytest.raises(AccessRefused, match="read access to queue 'm'"):
        hand.queue("m", x_dead_letter_exchange="m2")
    with pytest.raises(PreconditionFailed, match="invalid type"):
        hand.queue("m", x_dead_letter_exchange=5)
    assert hand.queue("m").name == "m"


def test_the_default_exchange_cannot_be_changed_and_system_exchanges_cannot_be_deleted() -> None:
    hand = Hand()
    with pytest.raises(AccessRefused, match="default exchange"):
        authorized.exchange_to_delete(hand.guest, hand.vhost, "", if_unused=False)
    with pytest.raises(AccessRefused, match=r"system exchange 'amq.direct'"):
        authorized.exchange_to_delete(hand.guest, hand.vhost, "amq.direct", if_unused=False)
    with pytest.raises(AccessRefused, match="default exchange"):
        authorized.check_bind(hand.guest, hand.vhost, NamedBinding("", "queue", "q", "k", {}))


def test_binding_requires_permission_to_write_at_one_end_and_to_read_at_the_other() -> None:
    hand = Hand()
    with pytest.raises(AccessRefused, match="write access to queue 'q'"):
        authorized.bind(hand.user, hand.vhost, NamedBinding("amq.topic", "queue", "q", "k", {}), None)
    with pytest.raises(AccessRefused, match=r"read access to exchange 'amq.topic'"):
        authorized.bind(hand.user, hand.vhost, NamedBinding("amq.topic", "queue", "m", "k", {}), None)


def test_an_exclusive_queue_is_locked_for_other_connections() -> None:
    hand = Hand()
    peer = hand.lab.connect()
    peer.declare("q", exclusive=True)
    for locked in (
        lambda: authorized.purge_queue(hand.guest, hand.vhost, "q", None),
        lambda: authorized.queue_to_delete(hand.guest, hand.vhost, "q", None, if_unused=False, if_empty=False),
        lambda: authorized.bind(hand.guest, hand.vhost, NamedBinding("amq.topic", "queue", "q", "k", {}), None),
    ):
        with pytest.raises(ResourceLocked):
            locked()
    assert authorized.purge_queue(hand.guest, hand.vhost, "q", peer.session) == 0


def test_removing_a_missing_binding_succeeds() -> None:
    hand = Hand()
    authorized.unbind(hand.guest, hand.vhost, NamedBinding("nope", "queue", "q", "k", {}), None)
    authorized.unbind(hand.guest, hand.vhost, NamedBinding("amq.topic", "exchange", "amq.fanout", "k", {}), None)


def test_line_ends_are_stripped_from_names() -> None:
    assert authorized.stripped("a\r\nb\n") == "ab"
