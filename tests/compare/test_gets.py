from __future__ import annotations

import pytest
from pamqp import commands

from tests.compare.test_channel import kinds
from tests.compare.three import Three, said


@pytest.fixture
def three() -> Three:
    return Three().open()


def test_a_get_that_finds_only_ours_is_put_back_and_is_no_difference_while_things_happen(three: Three) -> None:
    three.client(said(commands.Basic.Publish, routing_key="q", body=b"m"))
    three.client(said(commands.Basic.Get, queue="q", no_ack=True))
    get = three.played()[-1]
    assert get.no_ack is False
    three.ours(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"m"))
    three.upstream(said(commands.Basic.GetEmpty))
    (nack,) = three.played()
    assert (nack.delivery_tag, nack.requeue) == (1, True)
    three.wait()
    assert three.found == []


def test_a_get_that_finds_only_ours_is_a_difference_when_nothing_has_happened(three: Three) -> None:
    three.client(said(commands.Basic.Get, queue="q"))
    three.ours(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"m"))
    three.upstream(said(commands.Basic.GetEmpty))
    assert [upstream for upstream, _ in three.found] == ["basic.get-empty"]


def test_a_get_looks_for_the_upstreams_message_at_ours(three: Three) -> None:
    three.client(said(commands.Basic.Get, queue="q", no_ack=True))
    three.played()
    three.ours(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"b"))
    three.upstream(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"a"))
    assert kinds(three.played()) == [commands.Basic.Get]
    three.ours(said(commands.Basic.GetOk, delivery_tag=2, routing_key="q", body=b"a"))
    settled = three.played()
    found = {(type(one), one.delivery_tag) for one in settled}
    assert found == {(commands.Basic.Nack, 1), (commands.Basic.Ack, 2)}
    three.wait()
    assert three.found == []


def test_a_message_that_ours_does_not_have_is_told_and_all_else_is_put_back(three: Three) -> None:
    three.client(said(commands.Basic.Get, queue="q"))
    three.played()
    three.ours(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"b"))
    three.upstream(said(commands.Basic.GetOk, delivery_tag=1, routing_key="q", body=b"a"))
    three.played()
    three.ours(said(commands.Basic.GetEmpty))
    assert [(type(one), one.delivery_tag) for one in three.played()] == [(commands.Basic.Nack, 1)]
    three.wait()
    assert [ours for _, ours in three.found] == ["has not delivered this message"]
