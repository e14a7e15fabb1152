from __future__ import annotations

from dataclasses import replace

import pytest

from amqp_broker.amqp.errors import DoesNotExist, InvalidParameter, PreconditionFailed, ProtectedFromDeletion
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.vhost import VHost
from tests.broker_parts import new_broker, new_connection, new_queue, new_vhost


@pytest.fixture
def quorum() -> VHost:
    """A vhost whose queues are quorum queues."""
    vhost = new_vhost()
    vhost.set_metadata(Metadata(default_queue_type="quorum"))
    return vhost


def test_a_declaration_gets_the_default_type_of_its_vhost(quorum: VHost) -> None:
    queue = new_queue(quorum, is_durable=True)
    assert (queue.type, queue.arguments) == ("quorum", {"x-queue-type": "quorum"})
    owner = new_connection()
    assert new_queue(quorum, "mine", is_durable=True, owner=owner, connection=owner).type == "classic"
    assert new_queue(quorum, "transient").type == "classic"


def test_the_same_declaration_finds_the_same_queue(quorum: VHost) -> None:
    assert new_queue(quorum, is_durable=True) is new_queue(quorum, is_durable=True)
    assert new_queue(quorum, "t") is new_queue(quorum, "t")


def test_existing_queues_keep_their_type() -> None:
    vhost = new_vhost()
    before = new_queue(vhost, is_durable=True)
    vhost.set_metadata(Metadata(default_queue_type="classic"))
    assert new_queue(vhost, is_durable=True) is before
    vhost.set_metadata(Metadata(default_queue_type="quorum"))
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-queue-type'"):
        new_queue(vhost, is_durable=True)


def test_arguments_are_checked_for_the_default_type(quorum: VHost) -> None:
    with pytest.raises(PreconditionFailed, match="of queue type rabbit_quorum_queue"):
        new_queue(quorum, is_durable=True, arguments={"x-max-priority": 3})
    assert new_queue(quorum, arguments={"x-max-priority": 3}).type == "classic"


@pytest.mark.parametrize(
    ("compat", "noted"),
    [("3.13", None), ("4.0", None), ("4.2", "quorum"), ("4.3", "quorum")],
)
def test_a_vhost_keeps_the_default_type_that_the_node_had(compat: str, noted: str | None) -> None:
    """Pull request 13837 of rabbitmq-server, in 4.1.1; seen in 4.0.5 and 4.3.6, also for changed vhosts."""
    broker = new_broker(compat=compat, default_queue_type="quorum")
    new, changed = broker.add_vhost("new", Metadata()), broker.add_vhost("changed", Metadata("", (), "stream"))
    changed.set_metadata(Metadata("d"))
    broker.settings = replace(broker.settings, default_queue_type="classic")
    for vhost in (broker.vhosts["/"], new, changed):
        assert vhost.metadata.default_queue_type == noted
        assert vhost.default_queue_type == (noted or "classic")
        assert new_queue(vhost, is_durable=True).type == (noted or "classic")


def test_an_unknown_type_is_refused_and_changes_nothing() -> None:
    broker = new_broker()
    metadata = Metadata(default_queue_type="lazy")
    with pytest.raises(InvalidParameter, match=r"^unsupported queue type 'lazy'$"):
        broker.vhosts["/"].set_metadata(metadata)
    with pytest.raises(InvalidParameter):
        broker.add_vhost("v", metadata)
    assert set(broker.vhosts) == {"/"}
    assert broker.vhosts["/"].metadata == Metadata("Default virtual host", (), "classic")


def test_a_protected_vhost_cannot_be_deleted() -> None:
    broker = new_broker()
    vhost = broker.add_vhost("v", Metadata(is_protected_from_deletion=True))
    text = "^Refusing to delete virtual host 'v' because it is protected from deletion$"
    with pytest.raises(ProtectedFromDeletion, match=text):
        broker.delete_vhost("v")
    assert broker.vhost("v") is vhost
    vhost.set_metadata(Metadata())
    broker.delete_vhost("v")
    with pytest.raises(DoesNotExist):
        broker.delete_vhost("v")
