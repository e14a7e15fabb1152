"""Declare, check and delete queues and exchanges with pika, including refusals."""

from __future__ import annotations

from collections.abc import Callable

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from compat.unique_names import unique_name
from compat.waiting import wait_until

Connect = Callable[..., pika.BlockingConnection]


def test_declaring_again_returns_the_counts(channel: BlockingChannel, queue: str) -> None:
    channel.confirm_delivery()
    for _ in range(3):
        channel.basic_publish("", queue, b"")
    declared = channel.queue_declare(queue).method
    assert (declared.queue, declared.message_count, declared.consumer_count) == (queue, 3, 0)
    assert channel.queue_purge(queue).method.message_count == 3
    channel.basic_consume(queue, lambda *_: None)
    assert channel.queue_declare(queue, passive=True).method.consumer_count == 1


@pytest.mark.parametrize("kind", ["queue", "exchange"])
def test_a_passive_declare_of_a_missing_name_closes_the_channel_with_not_found(
    channel: BlockingChannel, kind: str
) -> None:
    missing = unique_name("missing")
    declare = channel.queue_declare if kind == "queue" else channel.exchange_declare
    with pytest.raises(ChannelClosedByBroker) as raised:
        declare(missing, passive=True)
    assert raised.value.reply_code == 404
    assert raised.value.reply_text == f"NOT_FOUND - no {kind} '{missing}' in vhost '/'"


def test_declaring_a_queue_with_other_properties_is_a_failed_precondition(channel: BlockingChannel, queue: str) -> None:
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.queue_declare(queue, durable=True)
    assert raised.value.reply_code == 406
    assert raised.value.reply_text == (
        f"PRECONDITION_FAILED - inequivalent arg 'durable' for queue '{queue}' in vhost '/': "
        "received 'true' but current is 'false'"
    )


def test_declaring_a_queue_with_another_argument_is_a_failed_precondition(connect: Connect) -> None:
    queue = unique_name("limited")
    connect().channel().queue_declare(queue, arguments={"x-max-length": 10})
    with pytest.raises(ChannelClosedByBroker) as other_value:
        connect().channel().queue_declare(queue, arguments={"x-max-length": 20})
    assert other_value.value.reply_text == (
        f"PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue '{queue}' in vhost '/': "
        "received '20' but current is '10'"
    )
    with pytest.raises(ChannelClosedByBroker) as no_value:
        connect().channel().queue_declare(queue)
    assert no_value.value.reply_text == (
        f"PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue '{queue}' in vhost '/': "
        "received none but current is the value '10' of type 'signedint'"
    )


def test_declaring_an_exchange_of_another_type_is_a_failed_precondition(channel: BlockingChannel) -> None:
    exchange = unique_name("exchange")
    channel.exchange_declare(exchange, "direct")
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.exchange_declare(exchange, "topic")
    assert raised.value.reply_text == (
        f"PRECONDITION_FAILED - inequivalent arg 'type' for exchange '{exchange}' in vhost '/': "
        "received 'topic' but current is 'direct'"
    )


def test_an_argument_of_the_wrong_type_is_a_failed_precondition(channel: BlockingChannel) -> None:
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.queue_declare(unique_name("q"), arguments={"x-message-ttl": -1})
    assert raised.value.reply_code == 406
    assert raised.value.reply_text.startswith("PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue ")


def test_reserved_names_are_refused(connect: Connect) -> None:
    refused_ones: tuple[Callable[[BlockingChannel], object], ...] = (
        lambda channel: channel.queue_declare("amq.mine"),
        lambda channel: channel.exchange_declare("amq.mine"),
        lambda channel: channel.exchange_delete("amq.direct"),
        lambda channel: channel.queue_bind(channel.queue_declare("", exclusive=True).method.queue, "", "key"),
    )
    for refused in refused_ones:
        with pytest.raises(ChannelClosedByBroker) as raised:
            refused(connect().channel())
        assert raised.value.reply_code == 403


def test_a_reopened_channel_works(connection: pika.BlockingConnection) -> None:
    for _ in range(3):
        channel = connection.channel(channel_number=7)
        with pytest.raises(ChannelClosedByBroker):
            channel.queue_declare(unique_name("missing"), passive=True)
    assert connection.channel(channel_number=7).queue_declare("", exclusive=True).method.queue


def test_an_exclusive_queue_is_locked_for_other_connections(connect: Connect, channel: BlockingChannel) -> None:
    queue = unique_name("exclusive")
    channel.queue_declare(queue, exclusive=True)
    uses: tuple[Callable[[BlockingChannel], object], ...] = (
        lambda other: other.queue_declare(queue, exclusive=True),
        lambda other: other.queue_declare(queue, passive=True),
        lambda other: other.basic_consume(queue, lambda *_: None),
        lambda other: other.basic_get(queue),
        lambda other: other.queue_bind(queue, "amq.fanout"),
        lambda other: other.queue_purge(queue),
        lambda other: other.queue_delete(queue),
    )
    for use in uses:
        with pytest.raises(ChannelClosedByBroker) as raised:
            use(connect().channel())
        assert raised.value.reply_code == 405
        assert raised.value.reply_text.startswith(
            f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '/'"
        )


def test_an_exclusive_queue_is_deleted_with_its_connection(connect: Connect, channel: BlockingChannel) -> None:
    queue, owner = unique_name("exclusive"), connect()
    owner.channel().queue_declare(queue, exclusive=True)
    owner.close()
    channel.queue_declare(queue, exclusive=True)


def test_a_queue_is_not_deleted_if_it_is_used_or_not_empty(connect: Connect, queue: str) -> None:
    user = connect().channel()
    user.confirm_delivery()
    user.basic_publish("", queue, b"")
    with pytest.raises(ChannelClosedByBroker) as not_empty:
        connect().channel().queue_delete(queue, if_empty=True)
    assert not_empty.value.reply_text == f"PRECONDITION_FAILED - queue '{queue}' in vhost '/' not empty"
    user.basic_consume(queue, lambda *_: None)
    with pytest.raises(ChannelClosedByBroker) as in_use:
        connect().channel().queue_delete(queue, if_unused=True)
    assert in_use.value.reply_text == f"PRECONDITION_FAILED - queue '{queue}' in vhost '/' in use"


def test_deleting_returns_the_number_of_messages_and_is_idempotent(channel: BlockingChannel, queue: str) -> None:
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"")
    assert channel.queue_delete(queue).method.message_count == 1
    assert channel.queue_delete(queue).method.message_count == 0


def test_an_exchange_is_not_deleted_while_it_is_bound(connect: Connect, channel: BlockingChannel, queue: str) -> None:
    exchange = unique_name("exchange")
    channel.exchange_declare(exchange)
    channel.queue_bind(queue, exchange, "key")
    with pytest.raises(ChannelClosedByBroker) as raised:
        connect().channel().exchange_delete(exchange, if_unused=True)
    assert raised.value.reply_text == f"PRECONDITION_FAILED - exchange '{exchange}' in vhost '/' in use"
    channel.queue_unbind(queue, exchange, "key")
    channel.exchange_delete(exchange, if_unused=True)


def test_an_auto_delete_exchange_is_deleted_with_its_last_binding(channel: BlockingChannel, queue: str) -> None:
    exchange = unique_name("auto-delete")
    channel.exchange_declare(exchange, "fanout", auto_delete=True)
    channel.queue_bind(queue, exchange)
    channel.queue_delete(queue)
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.exchange_declare(exchange, passive=True)
    assert raised.value.reply_code == 404


def test_an_unused_queue_expires(connect: Connect, connection: pika.BlockingConnection) -> None:
    queue = unique_name("expiring")
    connection.channel().queue_declare(queue, arguments={"x-expires": 50})
    exchange = unique_name("watch")
    connection.channel().exchange_declare(exchange, "fanout", auto_delete=True)
    connection.channel().queue_bind(queue, exchange)

    # A passive declare of the queue would count as use, so its only exchange is checked instead.
    def is_gone() -> bool:
        try:
            connection.channel().exchange_declare(exchange, passive=True)
        except ChannelClosedByBroker:
            return True
        return False

    wait_until(is_gone, pause=connection.process_data_events)
    with pytest.raises(ChannelClosedByBroker):
        connection.channel().queue_declare(queue, passive=True)
