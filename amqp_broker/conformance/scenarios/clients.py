"""Several clients at once."""

from __future__ import annotations

from pamqp.commands import Basic, Confirm, Exchange, Queue

from amqp_broker.conformance.lab import Lab, scenario


@scenario
def ten_publishers_and_one_consumer(lab: Lab) -> None:
    consumer = lab.channel()
    q = lab.queue()
    consumer.consume(q)
    for number in range(10):
        publisher = lab.channel()
        publisher.publish(str(number).encode(), routing_key=q)
        consumer.ack(*consumer.deliveries(1))


@scenario
def one_publisher_and_ten_consumers_of_their_own_queues(lab: Lab) -> None:
    x = lab.name("x")
    publisher = lab.channel()
    publisher.exchange(x, "fanout")
    consumers = [lab.channel() for _ in range(10)]
    for consumer in consumers:
        q = consumer.declare(exclusive=True)
        consumer.bind(q, x)
        consumer.consume(q)
    publisher.publish(b"to all", exchange=x)
    for consumer in consumers:
        consumer.deliveries(1)


@scenario
def consumers_on_several_connections_take_turns(lab: Lab) -> None:
    q = lab.queue()
    consumers = [lab.channel() for _ in range(3)]
    for consumer in consumers:
        consumer.consume(q)
    lab.put(q, *(str(number).encode() for number in range(6)))
    for consumer in consumers:
        consumer.deliveries(2)


@scenario
def a_question_and_its_answer(lab: Lab) -> None:
    client, server = lab.channel(), lab.channel()
    requests, replies = lab.queue("requests"), client.declare(exclusive=True)
    server.consume(requests, "server")
    client.consume(replies, "client")
    client.publish(b"2 + 2", routing_key=requests, reply_to=replies, correlation_id="1")
    request = server.expect(Basic.Deliver)
    reply_to = (request.properties or {})["reply_to"]
    server.publish(b"4", routing_key=reply_to, correlation_id="1")
    server.ack(1)
    client.deliveries(1)


@scenario
def a_queue_deleted_by_another_client_is_missing(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    q = one.declare(lab.name("q"))
    two.call(Queue.Delete, queue=q)
    one.publish(b"x", routing_key=q, mandatory=True)
    one.sync()
    one.call(Basic.Get, queue=q)


@scenario
def an_exchange_deleted_by_another_client_is_missing(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    x = lab.name("x")
    one.exchange(x, "fanout")
    one.publish(b"x", exchange=x, mandatory=True)
    one.sync()
    two.call(Exchange.Delete, exchange=x)
    one.publish(b"x", exchange=x, mandatory=True)
    one.expect()


@scenario
def a_binding_made_by_another_client_counts_at_once(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    x, q = lab.name("x"), lab.queue()
    one.exchange(x, "direct")
    one.publish(b"1", exchange=x, routing_key="k", mandatory=True)
    one.sync()
    two.bind(q, x, "k")
    one.publish(b"2", exchange=x, routing_key="k", mandatory=True)
    one.sync(q)
    two.call(Queue.Unbind, queue=q, exchange=x, routing_key="k")
    one.publish(b"3", exchange=x, routing_key="k", mandatory=True)
    one.sync(q)
    one.drain(q)


@scenario
def two_clients_declare_the_same_queue(lab: Lab) -> None:
    one, two = lab.channel(), lab.channel()
    one.declare(lab.name("q"), durable=True)
    two.declare(lab.name("q"), durable=True)
    one.consume(lab.name("q"))
    two.call(Queue.Declare, queue=lab.name("q"), auto_delete=True)


@scenario
def a_message_moves_from_client_to_client_by_nacks(lab: Lab) -> None:
    channels = [lab.channel() for _ in range(3)]
    q = lab.queue()
    lab.put(q, b"hot potato")
    for channel in channels:
        channel.get(q)
        channel.nack(1)
        channel.sync(q)
    channels[0].drain(q)


@scenario
def confirms_of_several_clients_do_not_mix(lab: Lab) -> None:
    q = lab.queue()
    channels = [lab.channel() for _ in range(3)]
    for channel in channels:
        channel.call(Confirm.Select)
    for count, channel in enumerate(channels, 1):
        for _ in range(count):
            channel.publish(b"x", routing_key=q)
    for count, channel in enumerate(channels, 1):
        channel.confirms(1, count)
        channel.sync()
    channels[0].declare(q, passive=True)
