"""A queue's page says who holds it up; channels and connections have names, charts and counters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer

QUEUE = "held"


@pytest.fixture
def worker(running: RunningServer) -> Iterator[BlockingChannel]:
    """A consumer with two unacked messages of five, on a connection with a name."""
    with channel(running.port, "worker") as client:
        client.queue_declare(QUEUE, durable=True)
        client.basic_qos(prefetch_count=2)
        client.basic_consume(QUEUE, lambda *_: None, consumer_tag="slow")
        for number in range(5):
            client.basic_publish("", QUEUE, b"%d" % number)
        running.until(lambda server: server.broker.vhosts["/"].queues[QUEUE].unacked_count == 2)
        yield client
        client.queue_delete(QUEUE)


def connection_of(running: RunningServer) -> str:
    return running.ask(lambda server: next(iter(server.broker.connections)).name)


def test_the_consumers_of_a_queue_come_before_its_messages_with_what_they_hold(
    browser: Browser, worker: BlockingChannel
) -> None:
    browser.start(f"queues/%2F/{QUEUE}")
    assert browser.row("slow")[:3] == ["slow", "worker", "2"]
    browser.until(lambda: browser.row("slow")[3].endswith(" s"))
    assert browser.row("slow")[6] == "2"
    heads = browser.texts("main h2")
    assert heads.index("Consumers") < next(index for index, head in enumerate(heads) if head.startswith("Messages"))
    worker.basic_ack(1)
    worker.connection.process_data_events()
    browser.until(lambda: browser.row("slow")[4] != "0/s")


def test_the_rates_of_the_only_consumer_are_those_of_the_chart(browser: Browser, worker: BlockingChannel) -> None:
    browser.start(f"queues/%2F/{QUEUE}")
    tags = iter(range(1, 1_000_000))

    def agree() -> bool:
        worker.basic_publish("", QUEUE, b"x")
        worker.basic_ack(next(tags))
        worker.connection.process_data_events()
        deliver, ack = (browser.find(".legend li", name).text[len(name) :] for name in ("Deliver / get", "Ack"))
        return ack != "0/s" and browser.row("slow")[4:6] == [ack, deliver]

    browser.until(agree)


def test_the_oldest_message_is_as_old_as_its_stay(browser: Browser, worker: BlockingChannel) -> None:
    browser.start(f"queues/%2F/{QUEUE}")
    browser.until(lambda: re.search(r"\n[1-9]\d* s$", browser.find(".facts div", "Oldest message").text))
    worker.queue_purge(QUEUE)
    browser.until(lambda: browser.find(".facts div", "Oldest message").text.endswith("\n\u2013"))
    assert browser.find(".facts div", "Head timestamp").text.endswith("\n\u2013")


def test_messages_that_were_got_are_counted_beside_the_consumers(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("got", exclusive=True)
        client.basic_publish("", "got", b"m")
        assert client.basic_get("got")[0]
        browser.start("queues/%2F/got")
        browser.shows("1 more unacked were got by basic.get, or by consumers that are cancelled.")


def test_an_unacked_message_names_its_holder(browser: Browser, running: RunningServer, worker: BlockingChannel) -> None:
    browser.start(f"queues/%2F/{QUEUE}")
    browser.find("[aria-label='State of the messages']")
    browser.script(
        "const one = document.querySelector('[aria-label=\"State of the messages\"]');"
        "one.value = 'unacked'; one.dispatchEvent(new Event('change'))"
    )
    browser.find(".messages .tag", "held by slow")
    browser.click(".messages summary")
    link = browser.find(".messages .message a", connection_of(running))
    assert str(link.get_attribute("href")).endswith(quote(connection_of(running), safe=""))
    browser.find(".messages .message", "Delivered as 1 on channel 1 of")


def test_connection_and_channel_have_the_name_that_the_client_gave_and_a_chart(
    browser: Browser, running: RunningServer, worker: BlockingChannel
) -> None:
    name = connection_of(running)
    browser.start(f"connections/{quote(name, safe='')}")
    browser.find("main h1", "worker")
    browser.find("main dd", name)
    browser.find(".chart canvas")
    browser.shows("From client", ".legend")
    browser.go(f"channels/{quote(name + ' (1)', safe='')}")
    browser.find("main h1", "Channel 1 of worker")
    browser.find(".chart canvas")


def test_counters_are_broken_down_by_queue_exchange_and_channel(
    browser: Browser, running: RunningServer, worker: BlockingChannel
) -> None:
    name = connection_of(running)
    browser.start(f"queues/%2F/{QUEUE}")
    table = "[aria-label='Messages by exchange']"
    browser.until(lambda: browser.texts(f"{table} tbody td")[:2] == ["(AMQP default)", "5"])
    browser.until(lambda: browser.texts("[aria-label='Deliveries by channel'] tbody td")[:2] == [f"{name} (1)", "2"])
    browser.go("exchanges/%2F/amq.default")
    browser.until(lambda: browser.texts("[aria-label='Messages by queue'] tbody td")[:2] == [QUEUE, "5"])
    browser.go(f"channels/{quote(name + ' (1)', safe='')}")
    browser.until(lambda: browser.texts("[aria-label='Publishes by exchange'] tbody td")[:2] == ["(AMQP default)", "5"])
    browser.until(lambda: browser.texts("[aria-label='Deliveries by queue'] tbody td")[:2] == [QUEUE, "2"])
