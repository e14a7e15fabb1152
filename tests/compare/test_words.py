from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.compare import words
from amqp_broker.compare.known import LAST_DEATH
from amqp_broker.compare.names import Names
from amqp_broker.compare.speech import Content, Said
from amqp_broker.fields import Long, Timestamp
from amqp_broker.message import Properties
from amqp_broker.shovel.client import call


def content(**properties: Any) -> Content:
    return Content(Properties(**properties), 1, b"digest")


def facts(names: Names | None = None, **properties: Any) -> tuple[Any, ...]:
    return words.content_facts(content(**properties), names or Names())


def test_a_method_is_spelled_as_the_specification_does() -> None:
    assert words.name_of(commands.Queue.DeclareOk()) == "queue.declare-ok"


def test_what_is_shown_is_one_line_and_has_no_secrets() -> None:
    method = call(commands.Connection.StartOk, client_properties={}, mechanism="PLAIN", response="\0a\0secret")
    assert "secret" not in words.show(Said(0, method))
    close = call(commands.Channel.Close, reply_code=404, reply_text="a\x1b[2Jb\nc")
    assert words.show(Said(1, close)).isprintable()


def test_the_order_of_headers_is_not_compared() -> None:
    assert facts(headers={"a": 1, "b": 2}) == facts(headers={"b": 2, "a": 1})


@pytest.mark.parametrize("other", [2, Long(1), "1", True, None])
def test_values_of_headers_and_their_types_are_compared(other: Any) -> None:
    assert facts(headers={"a": 1}) != facts(headers={"a": other})


def test_when_a_message_died_is_not_compared() -> None:
    def deaths(time: int, count: int = 1) -> dict[str, Any]:
        return {"x-death": [{"count": count, "time": Timestamp(time)}]}

    assert facts(headers=deaths(1)) == facts(headers=deaths(2))
    assert facts(headers=deaths(1)) != facts(headers=deaths(1, count=2))


def test_headers_that_an_old_upstream_does_not_know_are_not_compared() -> None:
    names = Names(LAST_DEATH)
    assert facts(names, headers={"x-last-death-queue": "q"}) == facts(names, headers={})
    assert facts(headers={"x-last-death-queue": "q"}) != facts(headers={})


def test_texts_are_compared_without_how_they_are_broken_into_lines_and_process_ids() -> None:
    assert words.plain_text("a <1.2.3>,\n   b", Names()) == words.plain_text("a <4.5.6>, b", Names())
    assert words.plain_text("a", Names()) != words.plain_text("b", Names())


def test_where_direct_replies_go_is_a_name_of_each_brokers_own() -> None:
    assert facts(reply_to="amq.rabbitmq.reply-to.x1") == facts(reply_to="amq.rabbitmq.reply-to.y2")
    assert facts(reply_to="a") != facts(reply_to="b")
