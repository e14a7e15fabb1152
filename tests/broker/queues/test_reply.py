"""The way of direct replies, also of those whose client has gone."""

from __future__ import annotations

from amqp_broker.broker.queues.reply import REPLY_PREFIX
from tests.broker_parts import CollectingConsumer, new_message, new_route, new_vhost


def test_a_reply_goes_to_the_waiting_requester_and_is_never_kept() -> None:
    queue = new_vhost().add_reply_queue()
    queue.push(new_message(b"too early"))
    collector = CollectingConsumer(queue, no_ack=True).start()
    assert queue.offer(new_message(b"answer", expiration="0"))
    assert collector.bodies == [b"answer"]
    assert queue.ready_count == 0


def test_replies_wait_while_the_socket_is_full() -> None:
    queue = new_vhost().add_reply_queue()
    collector = CollectingConsumer(queue, no_ack=True).start()
    queue.rotation.suspend(collector)
    queue.push(new_message(b"1"))
    queue.resume(collector)
    assert collector.bodies == [b"1"]


def test_the_reply_name_is_deleted_with_its_requester() -> None:
    vhost = new_vhost()
    queue = vhost.add_reply_queue()
    assert queue.name.startswith(REPLY_PREFIX)
    assert vhost.route(vhost.default_exchange, (queue.name,), {}, None)[0] == [queue]
    collector = CollectingConsumer(queue, no_ack=True).start()
    vhost.route_cache.of("user").update({b"method": new_route(vhost)})
    queue.unsubscribe(collector)
    assert vhost.reply_queues == {}
    assert vhost.route_cache.of("user") == {}


def test_a_message_to_a_deleted_reply_name_counts_as_routed_and_is_lost() -> None:
    vhost = new_vhost()
    (sink,) = vhost.route(vhost.default_exchange, (REPLY_PREFIX + "gone",), {}, None)[0]
    sink.push(new_message())
    assert sink.ready_count == 0
