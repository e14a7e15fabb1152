from __future__ import annotations

from pamqp import commands

from amqp_broker.compare.answers import Asked, copy_of
from amqp_broker.shovel.client import call


def test_a_question_is_shown_as_it_was_asked_also_if_it_is_translated_later() -> None:
    method = call(commands.Queue.Bind, queue="theirs", exchange="amq.direct")
    asked = Asked(copy_of(method), 0)
    method.queue = "ours"  # type: ignore[attr-defined]
    assert asked.text.startswith("queue.bind queue='theirs' exchange='amq.direct'")
