"""The same requests to RabbitMQ's management and to ours: what is answered is equal, but for what is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pika
import pytest

from compat.brokers import BrokerProcess, OurBroker, RabbitMQ, free_port
from compat.management_admin.asking import Said, ask, comparable
from compat.management_admin.differences import RULES, name_of
from compat.management_admin.message_requests import MESSAGES
from compat.management_admin.requests import SCENARIOS, Ask

ALL = {**SCENARIOS, "messages": MESSAGES}
QUEUES = {
    "m": {},
    "dead": {},
    "dying": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    "full": {"x-max-length": 1, "x-overflow": "reject-publish"},
    "qq": {"x-queue-type": "quorum"},
    "log": {"x-queue-type": "stream"},
}


class Heard(NamedTuple):
    """What both said to a question, made comparable."""

    question: Ask
    theirs: Said
    ours: Said


def declare(broker: BrokerProcess) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(broker.url))
    channel = connection.channel()
    for name, arguments in QUEUES.items():
        channel.queue_declare(name, durable=True, arguments=arguments)
    channel.exchange_declare("inner", "fanout", internal=True)
    connection.close()


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Heard]]]:
    """All scenarios, played by both."""
    if not RabbitMQ.is_installed():
        pytest.skip("RabbitMQ is not installed")
    plugins = ("rabbitmq_management", "rabbitmq_shovel_management", "rabbitmq_federation_management")
    rabbitmq = RabbitMQ(tmp_path_factory.mktemp("rabbitmq"), plugins=plugins)
    port = free_port()
    ours = OurBroker(tmp_path_factory.mktemp("ours"), options=("--management-port", str(port)))
    try:
        rabbitmq.start()
        ours.start()
        for broker in (rabbitmq, ours):
            declare(broker)
        sides = [(at, _node_at(at)) for at in (rabbitmq.management_port, port)]
        yield {
            name: [Heard(question, *(_said(question, *side) for side in sides)) for question in questions]
            for name, questions in ALL.items()
        }
    finally:
        rabbitmq.kill()
        ours.kill()


def _node_at(port: int) -> str:
    return str(next(iter(ask(port, Ask("GET", "vhosts")).value[0]["cluster_state"])))


def _said(question: Ask, port: int, node: str) -> Said:
    said = ask(port, question)
    return Said(said.status, comparable(said.value, node, question))


@pytest.mark.parametrize("name", list(ALL))
def test_the_answers_are_rabbitmqs(heard: dict[str, list[Heard]], name: str) -> None:
    wrong = [
        f"{one.question.method} {one.question.path} {str(one.question.body)[:120]} as {one.question.who}\n"
        f"  RabbitMQ {one.theirs.status} {json.dumps(one.theirs.value)[:1500]}\n"
        f"  ours     {one.ours.status} {json.dumps(one.ours.value)[:1500]}"
        for one in heard[name]
        if one.theirs != one.ours and name_of(*one) is None
    ]
    assert not wrong, "\n".join(wrong)


def test_we_never_fail(heard: dict[str, list[Heard]]) -> None:
    assert [
        one.question for asked in heard.values() for one in asked if one.ours.status >= 500 and one.ours.status != 503
    ] == []


def test_each_difference_occurs(heard: dict[str, list[Heard]]) -> None:
    found = {name_of(*one) for asked in heard.values() for one in asked if one.theirs != one.ours}
    assert found - {None} == set(RULES)
