"""Queues: declare, access, count, purge, delete."""

from __future__ import annotations

from pamqp.commands import Basic, Queue

from amqp_broker.conformance.lab import Lab, scenario


@scenario
def an_empty_name_lets_the_broker_choose_one(lab: Lab) -> None:
    channel = lab.channel()
    channel.declare()
    channel.declare()


@scenario
def a_name_the_broker_chose_cannot_be_declared_again(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    q = channel.declare(exclusive=True)
    channel.call(Queue.Declare, queue=q, passive=True)
    channel.call(Queue.Declare, queue=q, exclusive=True)


@scenario
def a_queue_name_with_the_reserved_prefix_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().call(Queue.Declare, queue="amq.foo")
    connection.channel().call(Queue.Declare, queue="amq.foo", passive=True)
    connection.channel().call(Queue.Declare, queue="amq.")


@scenario
def a_name_that_only_begins_like_the_reserved_prefix_is_fine(lab: Lab) -> None:
    channel = lab.channel()
    for beginning in ("amqx.", "AMQ.", "x.amq."):
        channel.declare(beginning + lab.name("q"), exclusive=True)


@scenario
def declaring_a_queue_again_counts_ready_messages(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"), durable=True)
    lab.put(q, b"1", b"2", b"3")
    channel.declare(q, durable=True)
    channel.get(q)
    channel.declare(q, durable=True)
    channel.declare(q, passive=True)


@scenario
def a_queue_counts_its_consumers(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    q = channel.declare(lab.name("q"))
    channel.consume(q, "one")
    connection.channel().consume(q, "two")
    channel.declare(q)
    channel.call(Basic.Cancel, consumer_tag="one")
    channel.declare(q)


@scenario
def a_passive_declare_of_a_missing_queue_is_refused(lab: Lab) -> None:
    lab.channel().call(Queue.Declare, queue=lab.name("q"), passive=True)


@scenario
def a_passive_declare_ignores_attributes_and_arguments(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"))
    channel.declare(q, passive=True, durable=True, auto_delete=True, arguments={"x-expires": "nonsense"})


@scenario
def a_passive_declare_does_not_know_the_queue_declared_last(lab: Lab) -> None:
    channel = lab.channel()
    channel.declare(lab.name("q"))
    channel.call(Queue.Declare, queue="", passive=True)


@scenario
def durable_and_auto_delete_are_compared(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().declare(lab.name("plain"))
    connection.channel().declare(lab.name("durable"), durable=True)
    connection.channel().declare(lab.name("auto"), auto_delete=True)
    connection.channel().call(Queue.Declare, queue=lab.name("plain"), durable=True)
    connection.channel().call(Queue.Declare, queue=lab.name("durable"))
    connection.channel().call(Queue.Declare, queue=lab.name("plain"), auto_delete=True)
    connection.channel().call(Queue.Declare, queue=lab.name("auto"))


@scenario
def durable_is_compared_before_auto_delete_and_arguments(lab: Lab) -> None:
    connection = lab.connect()
    arguments = {"x-message-ttl": 1000}
    connection.channel().declare(lab.name("q"))
    connection.channel().call(Queue.Declare, queue=lab.name("q"), durable=True, auto_delete=True, arguments=arguments)
    connection.channel().call(Queue.Declare, queue=lab.name("q"), auto_delete=True, arguments=arguments)
    connection.channel().call(Queue.Declare, queue=lab.name("q"), arguments=arguments)


@scenario
def the_owner_may_declare_an_exclusive_queue_again_durable_or_not(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.name("q")
    channel.declare(q, exclusive=True, durable=True)
    channel.declare(q, exclusive=True)
    channel.declare(q, exclusive=True, durable=True)


@scenario
def the_owner_must_declare_an_exclusive_queue_as_exclusive(lab: Lab) -> None:
    channel = lab.channel()
    channel.declare(lab.name("q"), exclusive=True)
    channel.call(Queue.Declare, queue=lab.name("q"))


@scenario
def a_queue_does_not_become_exclusive(lab: Lab) -> None:
    channel = lab.channel()
    channel.declare(lab.name("q"))
    channel.call(Queue.Declare, queue=lab.name("q"), exclusive=True)


@scenario
def an_exclusive_queue_is_locked_for_other_connections(lab: Lab) -> None:
    q = lab.channel().declare(lab.name("q"), exclusive=True)
    other = lab.connect()
    other.channel().call(Queue.Declare, queue=q)
    other.channel().call(Queue.Declare, queue=q, exclusive=True)
    other.channel().call(Queue.Declare, queue=q, passive=True)
    other.channel().bind(q, "amq.direct", "k")
    other.channel().call(Queue.Purge, queue=q)
    other.channel().call(Queue.Delete, queue=q)
    other.channel().call(Basic.Consume, queue=q)
    other.channel().get(q)


@scenario
def an_exclusive_queue_is_locked_for_unbinding(lab: Lab) -> None:
    owner, other = lab.channel(), lab.connect()
    q = owner.declare(lab.name("q"), exclusive=True)
    owner.bind(q, "amq.direct", lab.name("k"))
    other.channel().call(Queue.Unbind, queue=q, exchange="amq.direct", routing_key=lab.name("k"))
    other.channel().call(Queue.Unbind, queue=q, exchange="amq.direct", routing_key=lab.name("not bound"))


@scenario
def anybody_may_publish_to_an_exclusive_queue(lab: Lab) -> None:
    owner, other = lab.channel(), lab.channel()
    q = owner.declare(lab.name("q"), exclusive=True)
    lab.put(q, b"hello")
    owner.get(q)
    other.publish(b"mandatory", routing_key=q, mandatory=True)
    other.sync()


@scenario
def an_exclusive_queue_goes_with_its_connection(lab: Lab) -> None:
    connection = lab.connect()
    q = connection.channel().declare(lab.name("q"), exclusive=True)
    connection.close()
    lab.channel().call(Queue.Declare, queue=q, passive=True)


@scenario
def an_exclusive_queue_stays_when_its_channel_closes(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    q = channel.declare(lab.name("q"), exclusive=True)
    channel.call(Queue.Declare, queue=lab.name("missing"), passive=True)
    connection.channel().declare(q, exclusive=True)


@scenario
def an_auto_delete_queue_goes_with_its_last_consumer(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    q = channel.declare(lab.name("q"), auto_delete=True)
    channel.consume(q, "one")
    connection.channel().consume(q, "two")
    channel.call(Basic.Cancel, consumer_tag="one")
    channel.declare(q, passive=True)
    connection.channels[2].call(Basic.Cancel, consumer_tag="two")
    channel.call(Queue.Declare, queue=q, passive=True)


@scenario
def an_auto_delete_queue_that_never_had_a_consumer_stays(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"), auto_delete=True)
    channel.get(q)
    channel.declare(q, auto_delete=True)


@scenario
def an_auto_delete_queue_goes_when_its_consumers_channel_closes(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    q = channel.declare(lab.name("q"), auto_delete=True)
    channel.consume(q)
    channel.call(Queue.Declare, queue=lab.name("missing"), passive=True)
    connection.channel().call(Queue.Declare, queue=q, passive=True)


@scenario
def line_ends_are_stripped_from_queue_names(lab: Lab) -> None:
    channel = lab.channel()
    channel.declare(lab.name("q\r\n"))
    channel.declare(lab.name("q"), passive=True)
    channel.bind(lab.name("\nq"), "amq.direct", "k\r\n")
    channel.get(lab.name("q\n"))


# --- purge and delete


@scenario
def purging_counts_ready_messages(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2", b"3")
    channel.get(q)
    channel.call(Queue.Purge, queue=q)
    channel.call(Queue.Purge, queue=q)
    channel.nack(1)
    channel.drain(q)


@scenario
def purging_a_missing_queue_is_refused(lab: Lab) -> None:
    lab.channel().call(Queue.Purge, queue=lab.name("missing"))


@scenario
def deleting_counts_ready_messages(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    lab.put(q, b"1", b"2", b"3")
    channel.get(q)
    channel.call(Queue.Delete, queue=q)
    channel.ack(1)
    channel.call(Queue.Declare, queue=q, passive=True)


@scenario
def deleting_a_missing_queue_is_fine(lab: Lab) -> None:
    channel = lab.channel()
    channel.call(Queue.Delete, queue=lab.name("missing"))
    channel.call(Queue.Delete, queue=lab.name("missing"), if_unused=True, if_empty=True)


@scenario
def a_queue_with_consumers_is_not_deleted_if_unused(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    q = lab.queue()
    channel.consume(q)
    connection.channel().call(Queue.Delete, queue=q, if_unused=True)
    channel.call(Basic.Cancel, consumer_tag="c")
    channel.call(Queue.Delete, queue=q, if_unused=True)


@scenario
def a_queue_with_messages_is_not_deleted_if_empty(lab: Lab) -> None:
    connection = lab.connect()
    channel = connection.channel()
    q = lab.queue()
    lab.put(q, b"1")
    connection.channel().call(Queue.Delete, queue=q, if_empty=True)
    channel.get(q)
    channel.call(Queue.Delete, queue=q, if_empty=True)


@scenario
def if_empty_is_checked_before_if_unused(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    lab.put(q, b"1", b"2")
    consumer = connection.channel()
    consumer.call(Basic.Qos, prefetch_count=1)
    consumer.consume(q)
    consumer.deliveries(1)
    connection.channel().call(Queue.Delete, queue=q, if_unused=True, if_empty=True)


@scenario
def a_deleted_queue_can_be_declared_otherwise(lab: Lab) -> None:
    channel = lab.channel()
    channel.declare(lab.name("q"), durable=True)
    channel.call(Queue.Delete, queue=lab.name("q"))
    channel.declare(lab.name("q"), auto_delete=True)


# --- the last declared queue


@scenario
def an_empty_name_means_the_queue_declared_last(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"))
    lab.put(q, b"1", b"2")
    channel.bind("", "amq.direct", lab.name("k"))
    channel.get("")
    channel.call(Queue.Purge, queue="")
    channel.call(Basic.Consume, queue="", consumer_tag="c")
    channel.call(Queue.Unbind, queue="", exchange="amq.direct", routing_key=lab.name("k"))
    channel.call(Queue.Delete, queue="")


@scenario
def an_empty_name_without_a_queue_before_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().bind("", "amq.direct", "k")
    connection.channel().call(Queue.Unbind, queue="", exchange="amq.direct", routing_key="k")
    connection.channel().get("")
    connection.channel().call(Basic.Consume, queue="")
    connection.channel().call(Queue.Purge, queue="")
    connection.channel().call(Queue.Delete, queue="")


@scenario
def the_queue_declared_last_is_forgotten_with_the_channel(lab: Lab) -> None:
    connection = lab.connect()
    connection.channel().declare(lab.name("q"))
    connection.channel().get("")


@scenario
def the_queue_declared_last_may_have_been_declared_passively(lab: Lab) -> None:
    channel = lab.channel()
    q = lab.queue()
    channel.declare(lab.name("other"))
    channel.declare(q, passive=True)
    channel.call(Queue.Delete, queue="")


@scenario
def the_queue_declared_last_may_be_gone(lab: Lab) -> None:
    channel = lab.channel()
    channel.declare(lab.name("q"))
    channel.call(Queue.Delete, queue=lab.name("q"))
    channel.get("")


# --- bindings


@scenario
def binding_a_missing_object_is_refused(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    connection.channel().bind(lab.name("missing"), "amq.direct", "k")
    connection.channel().bind(q, lab.name("missing"), "k")
    connection.channel().bind(lab.name("missing"), lab.name("absent"), "k")


@scenario
def unbinding_a_missing_object_succeeds(lab: Lab) -> None:
    connection = lab.connect()
    q = lab.queue()
    connection.channel().call(Queue.Unbind, queue=q, exchange="amq.direct", routing_key="k")
    connection.channel().call(Queue.Unbind, queue=lab.name("missing"), exchange="amq.direct", routing_key="k")
    connection.channel().call(Queue.Unbind, queue=q, exchange=lab.name("missing"), routing_key="k")


@scenario
def unbinding_from_the_default_exchange_is_refused(lab: Lab) -> None:
    q = lab.queue()
    lab.channel().call(Queue.Unbind, queue=q, exchange="", routing_key=q)


@scenario
def binding_without_queue_and_key_takes_the_queue_name_as_key(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"))
    channel.bind("", "amq.direct", "")
    channel.publish(b"by name", exchange="amq.direct", routing_key=q, mandatory=True)
    channel.publish(b"lost", exchange="amq.direct", routing_key="", mandatory=True)
    channel.sync(q)
    channel.drain(q)


@scenario
def binding_a_named_queue_without_key_binds_the_empty_key(lab: Lab) -> None:
    channel = lab.channel()
    q, x = channel.declare(lab.name("q")), lab.name("x")
    channel.exchange(x, "direct")
    channel.bind(q, x, "")
    channel.publish(b"empty", exchange=x, routing_key="", mandatory=True)
    channel.publish(b"lost", exchange=x, routing_key=q, mandatory=True)
    channel.sync(q)
    channel.drain(q)


@scenario
def a_binding_with_other_arguments_is_another_binding(lab: Lab) -> None:
    channel = lab.channel()
    q, x = lab.queue(), lab.name("x")
    channel.exchange(x, "direct")
    channel.bind(q, x, "k")
    channel.bind(q, x, "k", {"a": 1})
    channel.call(Queue.Unbind, queue=q, exchange=x, routing_key="k")
    channel.publish(b"still bound", exchange=x, routing_key="k", mandatory=True)
    channel.call(Queue.Unbind, queue=q, exchange=x, routing_key="k", arguments={"a": 1})
    channel.publish(b"unbound", exchange=x, routing_key="k", mandatory=True)
    channel.sync(q)
    channel.drain(q)


@scenario
def the_order_of_a_bindings_arguments_does_not_matter(lab: Lab) -> None:
    channel = lab.channel()
    q, x = lab.queue(), lab.name("x")
    channel.exchange(x, "direct")
    channel.bind(q, x, "k", [("a", 1), ("b", 2)])
    channel.call(Queue.Unbind, queue=q, exchange=x, routing_key="k", arguments=[("b", 2), ("a", 1)])
    channel.publish(b"unbound", exchange=x, routing_key="k", mandatory=True)
    channel.sync()


@scenario
def a_deleted_queue_takes_its_bindings_with_it(lab: Lab) -> None:
    channel = lab.channel()
    q = channel.declare(lab.name("q"))
    channel.bind(q, "amq.direct", lab.name("k"))
    channel.call(Queue.Delete, queue=q)
    channel.declare(q)
    channel.publish(b"lost", exchange="amq.direct", routing_key=lab.name("k"), mandatory=True)
    channel.sync()
