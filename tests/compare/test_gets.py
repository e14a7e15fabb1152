from __future__ import annotations

import pytest
from pamqp import commands

from tests.compare.test_channel_pair import kinds
from tests.compare.three import Three, said


@pytest.fixture
def three() -> Three:
    return Three().open()


def test_a_local_get_without_counterpart_is_requeued_while_the_vhost_changes(three: Three) -> None:
    three.client(said(commands.Basic.Publish, routing_key="q", body=b"m"))
    three.client(said(commands.Basic.Get, queue="q", no_ack=True))
    get = three.played()[-1]
    assert get.no_ack is False
    three.local(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"m"))
    three.upstream(said(commands.Basic.GetEmpty))
    (nack,) = three.played()
    assert (nack.delivery_tag, nack.requeue) == (1, True)
    three.wait()
    assert three.found == []


def test_a_local_get_without_counterpart_is_a_difference_in_a_quiet_vhost(three: Three) -> None:
    three.client(said(commands.Basic.Get, queue="q"))
    three.local(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"m"))
    three.upstream(said(commands.Basic.GetEmpty))
    assert [upstream for upstream, _ in three.found] == ["basic.get-empty"]


def test_a_get_searches_the_local_queue_for_the_upstreams_message(three: Three) -> None:
    three.client(said(commands.Basic.Get, queue="q", no_ack=True))
    three.played()
    three.local(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"b"))
    three.upstream(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"a"))
    assert kinds(three.played()) == [commands.Basic.Get]
    three.local(said(commands.Basic.GetOk, delivery_tag=2, routing_key="q", body=b"a"))
    settled = three.played()
    found = {(type(one), one.delivery_tag) for one in settled}
    assert found == {(commands.Basic.Nack, 1), (commands.Basic.Ack, 2)}
    three.wait()
    assert three.found == []


def test_a_message_missing_locally_is_reported_and_the_others_are_requeued(three: Three) -> None:
    three.client(said(commands.Basic.Get, queue="q"))
    three.played()
    three.local(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"b"))
    three.upstream(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"a"))
    three.played()
    three.local(said(commands.Basic.GetEmpty))
    assert [(type(one), one.delivery_tag) for one in three.played()] == [(commands.Basic.Nack, 1)]
    three.wait()
    assert [local for _, local in three.found] == ["has not delivered this message"]
