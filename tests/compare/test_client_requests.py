from __future__ import annotations

from pamqp import commands

from amqp_broker.compare.client_requests import ClientRequest, copy_of
from amqp_broker.shovel.amqp_client import call


def test_a_request_is_shown_as_sent_even_after_translation() -> None:
    method = call(commands.Queue.Bind, queue="theirs", exchange="amq.direct")
    asked = ClientRequest(copy_of(method), 0)
    method.queue = "local"
    assert asked.text.startswith("queue.bind queue='theirs' exchange='amq.direct'")
