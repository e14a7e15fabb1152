"""Direct reply-to: answers to the channel of the request, without a queue."""

from __future__ import annotations

from pamqp import commands
from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.conformance.lab import Lab, scenario
from amqp_broker.conformance.scenario_channel import Channel

REPLY_TO = "amq.rabbitmq.reply-to"


def _ask(lab: Lab, client: Channel, server: Channel, body: bytes = b"question") -> str:
    """Send a request to the queue `requests` and return its reply-to name, as the server receives it."""
    client.publish(body, routing_key=lab.name("requests"), reply_to=REPLY_TO, correlation_id="1")
    client.sync(lab.name("requests"))
    request = server.get(lab.name("requests"), no_ack=True)
    return str((request.properties or {})["reply_to"])


def _client_and_server(lab: Lab) -> tuple[Channel, Channel]:
    lab.queue("requests")
    client = lab.channel()
    client.consume(REPLY_TO, "replies", no_ack=True)
    return client, lab.channel()


@scenario
def a_question_is_answered_directly(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    reply_to = _ask(lab, client, server)
    server.publish(b"answer", routing_key=reply_to, correlation_id="1", headers={"a": 1})
    client.deliveries(1)


@scenario
def an_answer_on_the_same_connection(lab: Lab) -> None:
    lab.queue("requests")
    connection = lab.connect()
    client, server = connection.channel(), connection.channel()
    client.consume(REPLY_TO, "replies", no_ack=True)
    reply_to = _ask(lab, client, server)
    server.publish(b"answer", routing_key=reply_to)
    client.deliveries(1)


@scenario
def an_answer_on_the_same_channel(lab: Lab) -> None:
    client, _ = _client_and_server(lab)
    reply_to = _ask(lab, client, client)
    client.publish(b"answer", routing_key=reply_to)
    client.deliveries(1)


@scenario
def the_name_to_answer_to_stays_while_the_consumer_does(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    for number in (b"1", b"2"):
        server.publish(b"answer " + number, routing_key=_ask(lab, client, server, number))
        client.expect(Basic.Deliver)


@scenario
def a_reply_consumer_may_not_acknowledge(lab: Lab) -> None:
    lab.channel().call(Basic.Consume, queue=REPLY_TO, consumer_tag="c")


@scenario
def a_channel_has_one_reply_consumer(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    channel.consume(REPLY_TO, "one", no_ack=True)
    connection.channel().consume(REPLY_TO, "one", no_ack=True)
    channel.call(Basic.Consume, queue=REPLY_TO, consumer_tag="two", no_ack=True)


@scenario
def a_second_reply_consumer_without_no_ack_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.consume(REPLY_TO, "one", no_ack=True)
    channel.call(Basic.Consume, queue=REPLY_TO, consumer_tag="two")


@scenario
def a_reply_consumer_with_the_tag_of_another_consumer_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.consume(lab.queue(), "same")
    channel.call(Basic.Consume, queue=REPLY_TO, consumer_tag="same", no_ack=True)


@scenario
def a_second_reply_consumer_with_the_same_tag_is_one_too_many(lab: Lab) -> None:
    channel = lab.channel()
    channel.consume(REPLY_TO, "same", no_ack=True)
    channel.call(Basic.Consume, queue=REPLY_TO, consumer_tag="same", no_ack=True)


@scenario
def the_broker_may_choose_the_tag_of_a_reply_consumer(lab: Lab) -> None:
    lab.channel().consume(REPLY_TO, "", no_ack=True)


@scenario
def a_reply_consumer_may_be_exclusive_and_have_any_arguments(lab: Lab) -> None:
    lab.channel().consume(REPLY_TO, exclusive=True, no_ack=True, arguments={"x-priority": "high"})


@scenario
def a_question_without_a_reply_consumer_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    channel.publish(b"question", routing_key=lab.queue(), reply_to=REPLY_TO)
    channel.expect()


@scenario
def a_question_on_another_channel_of_the_connection_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().consume(REPLY_TO, no_ack=True)
    other = connection.channel()
    other.publish(b"question", routing_key=lab.queue(), reply_to=REPLY_TO)
    other.expect()


@scenario
def the_reply_consumer_is_looked_for_after_the_exchange_and_before_the_expiration(lab: Lab) -> None:
    connection = lab.connect()
    one, two = connection.channel(), connection.channel()
    one.publish(b"question", exchange=lab.name("missing"), reply_to=REPLY_TO)
    one.expect()
    two.publish(b"question", reply_to=REPLY_TO, expiration="abc")
    two.expect()


@scenario
def a_name_that_only_begins_like_it_is_an_ordinary_reply_to(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    for reply_to in (REPLY_TO + ".", REPLY_TO + ".nonsense", "amq.rabbitmq.reply", q):
        channel.echo(q, b"question", reply_to=reply_to)


@scenario
def a_cancelled_reply_consumer_gets_nothing(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    reply_to = _ask(lab, client, server)
    client.call(Basic.Cancel, consumer_tag="replies")
    server.publish(b"late", routing_key=reply_to)
    server.sync()
    client.sync()
    client.publish(b"question", routing_key=lab.name("requests"), reply_to=REPLY_TO)
    client.expect()


@scenario
def a_reply_consumer_that_begins_again_has_another_name(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    first = _ask(lab, client, server)
    client.call(Basic.Cancel, consumer_tag="replies")
    client.consume(REPLY_TO, "again", no_ack=True)
    second = _ask(lab, client, server)
    server.publish(b"late", routing_key=first)
    server.publish(b"answer", routing_key=second)
    client.deliveries(1)


@scenario
def an_answer_to_a_closed_channel_is_lost(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    reply_to = _ask(lab, client, server)
    client.call(commands.Channel.Close, reply_code=200)
    server.call(Confirm.Select)
    server.publish(b"late", routing_key=reply_to)
    server.expect(Basic.Ack)


@scenario
def an_answer_is_confirmed(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    reply_to = _ask(lab, client, server)
    server.call(Confirm.Select)
    server.publish(b"answer", routing_key=reply_to, delivery_mode=2)
    server.expect(Basic.Ack)
    client.deliveries(1)


@scenario
def an_answer_may_be_mandatory(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    reply_to = _ask(lab, client, server)
    server.publish(b"answer", routing_key=reply_to, mandatory=True)
    client.deliveries(1)
    server.sync()


@scenario
def an_answer_never_expires(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    server.publish(b"answer", routing_key=_ask(lab, client, server), expiration="0")
    client.deliveries(1)


@scenario
def answers_go_through_the_default_exchange_only(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    reply_to = _ask(lab, client, server)
    server.publish(b"lost", exchange="amq.direct", routing_key=reply_to, mandatory=True)
    server.sync()
    client.sync()


@scenario
def an_answer_may_be_a_copy(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    reply_to = _ask(lab, client, server)
    server.publish(b"answer", routing_key=lab.name("missing"), headers={"CC": [reply_to]})
    client.deliveries(1)


@scenario
def the_bare_reply_to_name_is_not_a_queue(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    server.publish(b"lost", routing_key=REPLY_TO, mandatory=True)
    server.sync()
    client.sync()


@scenario
def an_answer_can_be_larger_than_a_frame(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    server.publish(b"x" * 200_000, routing_key=_ask(lab, client, server))
    client.deliveries(1)


@scenario
def the_pseudo_queue_seems_to_be_declared(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    reply_to = _ask(lab, client, server)
    for name in (REPLY_TO, reply_to):
        server.call(Queue.Declare, queue=name, passive=True)
    client.call(Queue.Declare, queue=REPLY_TO, passive=True)
    lab.channel().call(Queue.Declare, queue=REPLY_TO + ".nonsense", passive=True)


@scenario
def the_pseudo_queue_of_a_gone_client_is_missing(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    reply_to = _ask(lab, client, server)
    client.call(Basic.Cancel, consumer_tag="replies")
    server.call(Queue.Declare, queue=reply_to, passive=True)


@scenario
def the_pseudo_queue_may_be_declared_actively(lab: Lab) -> None:
    lab.channel().call(Queue.Declare, queue=REPLY_TO)
    lab.channel().call(Queue.Declare, queue=REPLY_TO, durable=True, exclusive=True)


@scenario
def the_pseudo_queue_cannot_be_got_from_bound_or_purged(lab: Lab) -> None:
    lab.channel().get(REPLY_TO)
    lab.channel().bind(REPLY_TO, "amq.direct", "k")
    lab.channel().call(Queue.Purge, queue=REPLY_TO)
    lab.channel().call(Queue.Delete, queue=REPLY_TO)


@scenario
def answers_come_after_deliveries_on_the_same_channel(lab: Lab) -> None:
    client, server = _client_and_server(lab)
    q = lab.queue()
    client.consume(q, "c")
    lab.put(q, b"1")
    client.deliveries(1)
    server.publish(b"answer", routing_key=_ask(lab, client, server))
    client.expect(Basic.Deliver)
    client.ack(1)
    client.sync(q)
