from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import ResourceLocked
from amqp_broker.broker.queues.ownership import check_owner, check_same_owner
from tests.broker_parts import new_connection, new_queue


def test_an_exclusive_queue_is_locked_for_other_connections() -> None:
    owner = new_connection()
    queue = new_queue(owner=owner, connection=owner)
    check_owner(queue, owner)
    for other in (new_connection(), None):
        with pytest.raises(ResourceLocked) as caught:
            check_owner(queue, other)
    assert str(caught.value) == (
        "cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared on another "
        "connection or the exclusive property value does not match that of the original declaration."
    )


def test_a_queue_without_an_owner_is_open_to_all_connections() -> None:
    check_owner(new_queue(), new_connection())
    check_owner(new_queue(), None)


def test_a_queue_keeps_its_owner() -> None:
    owner = new_connection()
    check_same_owner(new_queue(owner=owner, connection=owner), owner)
    check_same_owner(new_queue(), None)
    with pytest.raises(ResourceLocked):
        check_same_owner(new_queue(), owner)
    with pytest.raises(ResourceLocked):
        check_same_owner(new_queue(owner=owner, connection=owner), None)
