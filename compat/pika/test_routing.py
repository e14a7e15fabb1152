"""The exchanges of RabbitMQ's tutorials, and dead-lettering, with pika."""

from __future__ import annotations

from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from compat.unique_names import unique_name


def bound_queue(channel: BlockingChannel, exchange: str, *keys: str, **options: Any) -> str:
    queue: str = channel.queue_declare("", exclusive=True).method.queue
    for key in keys:
        channel.queue_bind(queue, exchange, key, **options)
    return queue


def drain(channel: BlockingChannel, queue: str) -> list[bytes]:
    bodies = []
    while (body := channel.basic_get(queue, auto_ack=True)[2]) is not None:
        bodies.append(body)
    return bodies


def next_messages(channel: BlockingChannel, queue: str, count: int, auto_ack: bool = True) -> list[Any]:
    """Wait for the next messages of a queue, and return them."""
    messages = []
    for method, properties, body in channel.consume(queue, auto_ack=auto_ack, inactivity_timeout=15):
        assert method is not None, "no message for 15 seconds"
        messages.append((method, properties, body))
        if len(messages) == count:
            break
    channel.cancel()
    return messages


@pytest.fixture
def confirmed(channel: BlockingChannel) -> BlockingChannel:
    channel.confirm_delivery()
    return channel


def test_fanout_copies_to_every_queue(confirmed: BlockingChannel) -> None:
    logs = unique_name("logs")
    confirmed.exchange_declare(logs, "fanout")
    queues = [bound_queue(confirmed, logs, "") for _ in range(3)]
    confirmed.basic_publish(logs, "any", b"news")
    assert [drain(confirmed, queue) for queue in queues] == [[b"news"]] * 3


def test_generated_queue_names_are_unique(channel: BlockingChannel) -> None:
    names = [channel.queue_declare("", exclusive=True).method.queue for _ in range(2)]
    assert all(name.startswith("amq.gen-") for name in names)
    assert len(set(names)) == 2


def test_a_direct_exchange_routes_by_the_whole_key(confirmed: BlockingChannel) -> None:
    logs = unique_name("direct-logs")
    confirmed.exchange_declare(logs, exchange_type="direct")
    everything = bound_queue(confirmed, logs, "info", "warning", "error")
    errors = bound_queue(confirmed, logs, "error")
    for severity in ("info", "warning", "error", "error.disk"):
        confirmed.basic_publish(logs, severity, severity.encode())
    assert drain(confirmed, everything) == [b"info", b"warning", b"error"]
    assert drain(confirmed, errors) == [b"error"]


def test_a_topic_exchange_routes_by_patterns_and_one_copy_for_each_queue(confirmed: BlockingChannel) -> None:
    animals = unique_name("animals")
    confirmed.exchange_declare(animals, "topic")
    orange = bound_queue(confirmed, animals, "*.orange.*")
    rabbits_or_lazy = bound_queue(confirmed, animals, "*.*.rabbit", "lazy.#")
    everything = bound_queue(confirmed, animals, "#")
    keys = [b"quick.orange.rabbit", b"lazy.orange.elephant", b"lazy.pink.rabbit", b"lazy", b"orange", b"a.orange.b.c"]
    for key in keys:
        confirmed.basic_publish(animals, key.decode(), key)
    assert drain(confirmed, orange) == keys[:2]
    assert drain(confirmed, rabbits_or_lazy) == keys[:4]
    assert drain(confirmed, everything) == keys


def test_a_headers_exchange_matches_all_or_any(confirmed: BlockingChannel) -> None:
    exchange = unique_name("headers")
    confirmed.exchange_declare(exchange, "headers")
    match = {"format": "pdf", "pages": 3}
    both = bound_queue(confirmed, exchange, "", arguments={"x-match": "all", **match})
    either = bound_queue(confirmed, exchange, "", arguments={"x-match": "any", **match})
    for body, headers in ((b"1", match), (b"2", {"format": "pdf"}), (b"3", {"pages": 4}), (b"4", {"pages": 3, "x": 1})):
        confirmed.basic_publish(exchange, "", body, pika.BasicProperties(headers=headers))
    assert drain(confirmed, both) == [b"1"]
    assert drain(confirmed, either) == [b"1", b"2", b"4"]


def test_an_unbound_queue_gets_no_more_messages(confirmed: BlockingChannel) -> None:
    queue = bound_queue(confirmed, "amq.fanout", "")
    confirmed.basic_publish("amq.fanout", "", b"before")
    confirmed.queue_unbind(queue, "amq.fanout", "")
    confirmed.basic_publish("amq.fanout", "", b"after")
    assert drain(confirmed, queue) == [b"before"]


def test_an_exchange_bound_to_an_exchange_passes_messages_on(confirmed: BlockingChannel) -> None:
    source, target = unique_name("source"), unique_name("target")
    confirmed.exchange_declare(source, "topic")
    confirmed.exchange_declare(target, "fanout")
    confirmed.exchange_bind(target, source, "orders.#")
    queue = bound_queue(confirmed, target, "")
    confirmed.basic_publish(source, "orders.eu.1", b"order")
    confirmed.basic_publish(source, "returns.eu.1", b"return")
    confirmed.exchange_unbind(target, source, "orders.#")
    confirmed.basic_publish(source, "orders.eu.2", b"late")
    assert drain(confirmed, queue) == [b"order"]


def test_an_alternate_exchange_takes_unroutable_messages(confirmed: BlockingChannel) -> None:
    main, alternate = unique_name("main"), unique_name("alternate")
    confirmed.exchange_declare(alternate, "fanout")
    confirmed.exchange_declare(main, "direct", arguments={"alternate-exchange": alternate})
    routed, unrouted = bound_queue(confirmed, main, "known"), bound_queue(confirmed, alternate, "")
    confirmed.basic_publish(main, "known", b"1", mandatory=True)
    confirmed.basic_publish(main, "unknown", b"2", mandatory=True)
    assert (drain(confirmed, routed), drain(confirmed, unrouted)) == ([b"1"], [b"2"])


def test_cc_and_bcc_headers_are_further_routing_keys_and_bcc_is_removed(confirmed: BlockingChannel) -> None:
    to, cc, bcc = (bound_queue(confirmed, "amq.direct", unique_name("own")) for _ in range(3))
    properties = pika.BasicProperties(headers={"CC": [cc], "BCC": [bcc], "kept": 1})
    confirmed.basic_publish("", to, b"letter", properties)
    for queue in (to, cc, bcc):
        _, received, body = confirmed.basic_get(queue, auto_ack=True)
        assert body == b"letter"
        assert received.headers == {"CC": [cc], "kept": 1}


def test_a_rejected_message_is_dead_lettered_with_its_history(confirmed: BlockingChannel) -> None:
    dead_letters, work = unique_name("dead-letters"), unique_name("work")
    confirmed.exchange_declare(dead_letters, "fanout")
    morgue = bound_queue(confirmed, dead_letters, "")
    confirmed.queue_declare(work, arguments={"x-dead-letter-exchange": dead_letters})
    confirmed.basic_publish("", work, b"poison", pika.BasicProperties(headers={"attempt": 1}))
    method, _, _ = confirmed.basic_get(work)
    confirmed.basic_nack(method.delivery_tag, requeue=False)
    [(method, properties, body)] = next_messages(confirmed, morgue, 1)
    assert (body, method.exchange, method.routing_key) == (b"poison", dead_letters, work)
    assert properties.headers["attempt"] == 1
    assert properties.headers["x-first-death-queue"] == work
    assert properties.headers["x-first-death-reason"] == "rejected"
    assert properties.headers["x-first-death-exchange"] == ""
    [death] = properties.headers["x-death"]
    assert (death["queue"], death["reason"], death["count"], death["exchange"]) == (work, "rejected", 1, "")
    assert death["routing-keys"] == [work]


def test_a_retry_queue_sends_messages_back_and_counts_their_deaths(confirmed: BlockingChannel) -> None:
    work, retry = unique_name("work"), unique_name("retry")
    confirmed.queue_declare(work, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": retry})
    confirmed.queue_declare(
        retry, arguments={"x-message-ttl": 20, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work}
    )
    confirmed.basic_publish("", work, b"flaky")
    for attempt in range(3):
        [(method, properties, body)] = next_messages(confirmed, work, 1, auto_ack=False)
        deaths = (properties.headers or {}).get("x-death", [])
        counts = {(death["queue"], death["reason"]): death["count"] for death in deaths}
        assert body == b"flaky"
        assert counts == ({(work, "rejected"): attempt, (retry, "expired"): attempt} if attempt else {})
        confirmed.basic_reject(method.delivery_tag, requeue=False)


def test_an_expired_message_is_dead_lettered_without_its_expiration(confirmed: BlockingChannel) -> None:
    waiting, done = unique_name("waiting"), unique_name("done")
    confirmed.queue_declare(done)
    confirmed.queue_declare(waiting, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": done})
    confirmed.basic_publish("", waiting, b"later", pika.BasicProperties(expiration="30"))
    [(_, properties, body)] = next_messages(confirmed, done, 1)
    assert (body, properties.expiration) == (b"later", None)
    [death] = properties.headers["x-death"]
    assert (death["reason"], death["original-expiration"]) == ("expired", "30")


def test_a_priority_queue_delivers_higher_priorities_first(confirmed: BlockingChannel) -> None:
    queue = unique_name("priorities")
    confirmed.queue_declare(queue, arguments={"x-max-priority": 5})
    for body, priority in ((b"low", 1), (b"none", None), (b"high", 5), (b"above", 9), (b"low again", 1)):
        confirmed.basic_publish("", queue, body, pika.BasicProperties(priority=priority))
    assert drain(confirmed, queue) == [b"high", b"above", b"low", b"low again", b"none"]
