"""amqp-broker answers administrative requests as RabbitMQ did, except for `differences.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.brokers import AmqpBroker
from compat.management.http_asking import Api
from compat.management_admin.differences import RULES, name_of
from compat.management_admin.playing import QUESTIONS, Said, play
from compat.management_admin.suite import MANAGEMENT_ADMIN
from compat.oracle.records import is_among, load

# RabbitMQ's answers by question; several if they vary.
Recorded = dict[str, list[Said]]


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return {title: [Said(**answer) for answer in answers] for title, answers in load(MANAGEMENT_ADMIN).items()}


@pytest.fixture(scope="module")
def amqp_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Said]]:
    """Return amqp-broker's answers by question."""
    broker = AmqpBroker(tmp_path_factory.mktemp("amqp-broker"), profile="3.13")
    broker.start()
    try:
        yield play(Api(broker))
    finally:
        broker.kill()


@pytest.mark.parametrize("title", QUESTIONS)
def test_answers_equal_rabbitmqs(amqp_broker: dict[str, Said], recorded: Recorded, title: str) -> None:
    rabbitmq, here = recorded[title], amqp_broker[title]
    assert is_among(here, rabbitmq) or any(name_of(QUESTIONS[title], said, here) for said in rabbitmq)


def test_no_request_is_an_internal_error(amqp_broker: dict[str, Said]) -> None:
    assert [title for title, said in amqp_broker.items() if said.status >= 500 and said.status != 503] == []


def test_each_listed_difference_occurs(amqp_broker: dict[str, Said], recorded: Recorded) -> None:
    found = {
        name_of(QUESTIONS[title], said, here)
        for title, here in amqp_broker.items()
        if not is_among(here, recorded[title])
        for said in recorded[title]
    }
    assert found - {None} == set(RULES)


def test_every_record_is_still_asked(recorded: Recorded) -> None:
    assert recorded.keys() == QUESTIONS.keys()
