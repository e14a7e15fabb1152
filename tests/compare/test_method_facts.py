from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.amqp.fields import Long, Timestamp
from amqp_broker.amqp.message import Properties
from amqp_broker.compare import method_facts
from amqp_broker.compare.method_reader import Content, Received
from amqp_broker.compare.name_pairs import NamePairs
from amqp_broker.compare.older_rabbitmq import LAST_DEATH
from amqp_broker.shovel.amqp_client import call


def content(**properties: Any) -> Content:
    return Content(Properties(**properties), 1, b"digest")


def facts(names: NamePairs | None = None, **properties: Any) -> tuple[Any, ...]:
    return method_facts.content_facts(content(**properties), names or NamePairs())


def test_a_shown_method_is_one_line_without_secrets() -> None:
    method = call(commands.Connection.StartOk, client_properties={}, mechanism="PLAIN", response="\0a\0secret")
    assert "secret" not in method_facts.show(Received(0, method))
    close = call(commands.Channel.Close, reply_code=404, reply_text="a\x1b[2Jb\nc")
    assert method_facts.show(Received(1, close)).isprintable()


def test_the_order_of_headers_is_not_compared() -> None:
    assert facts(headers={"a": 1, "b": 2}) == facts(headers={"b": 2, "a": 1})


@pytest.mark.parametrize("other", [2, Long(1), "1", True, None])
def test_header_values_and_their_types_are_compared(other: Any) -> None:
    assert facts(headers={"a": 1}) != facts(headers={"a": other})


def test_the_time_of_death_is_not_compared() -> None:
    def deaths(time: int, count: int = 1) -> dict[str, Any]:
        return {"x-death": [{"count": count, "time": Timestamp(time)}]}

    assert facts(headers=deaths(1)) == facts(headers=deaths(2))
    assert facts(headers=deaths(1)) != facts(headers=deaths(1, count=2))


def test_headers_that_an_old_upstream_does_not_know_are_not_compared() -> None:
    names = NamePairs(LAST_DEATH)
    assert facts(names, headers={"x-last-death-queue": "q"}) == facts(names, headers={})
    assert facts(headers={"x-last-death-queue": "q"}) != facts(headers={})


def test_line_breaks_and_process_ids_of_texts_are_not_compared() -> None:
    assert method_facts.plain_text("a <1.2.3>,\n   b", NamePairs()) == method_facts.plain_text(
        "a <4.5.6>, b", NamePairs()
    )
    assert method_facts.plain_text("a", NamePairs()) != method_facts.plain_text("b", NamePairs())


def test_reply_to_names_of_direct_replies_are_not_compared() -> None:
    assert facts(reply_to="amq.rabbitmq.reply-to.x1") == facts(reply_to="amq.rabbitmq.reply-to.y2")
    assert facts(reply_to="a") != facts(reply_to="b")
