"""A queue's page explains its dead letters, and returns, moves, downloads and publishes them again."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from selenium import webdriver

from compat.waiting import wait_until
from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer

MESSAGE = ".messages > li"


@pytest.fixture
def client(running: RunningServer) -> Iterator[BlockingChannel]:
    """Three rejected orders, which came with the key `order.new` through the exchange `shop`, in `failed`."""
    with channel(running.port) as client:
        for name in ("failed", "orders", "parked"):
            client.queue_delete(name)
        client.queue_declare("failed", durable=True)
        client.queue_declare("parked", durable=True)
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed"}
        client.queue_declare("orders", durable=True, arguments=dead)
        client.exchange_declare("shop", "topic")
        client.queue_bind("orders", "shop", "order.#")
        for number in range(3):
            properties = pika.BasicProperties(timestamp=1_700_000_000, expiration="90000", headers={"tenant": "a"})
            client.basic_publish("shop", "order.new", json.dumps({"id": number}).encode(), properties)
            method, _, _ = client.basic_get("orders")
            client.basic_reject(method.delivery_tag, requeue=False)
        yield client


def bodies(running: RunningServer, name: str) -> list[bytes]:
    return running.ask(lambda server: [one.body for one in server.broker.vhosts["/"].queues[name].messages()])


def choose(browser: Browser, *numbers: int) -> None:
    browser.until(lambda: browser.all(MESSAGE))
    for number in numbers:
        browser.click(f"input[aria-label='Choose message {number}']")


def read(path: Path) -> str:
    """Return the text of a file when the browser has written it."""
    wait_until(path.exists)
    return path.read_text("utf-8")


def test_chosen_dead_letters_return(browser: Browser, running: RunningServer, client: BlockingChannel) -> None:
    browser.start("queues/%2F/failed")
    browser.shows("All ready messages", ".chosen")
    choose(browser, 0, 2)
    browser.shows("2 messages chosen", ".chosen")
    browser.press("Return", ".chosen")
    browser.toast("2 messages returned")
    assert bodies(running, "orders") == [b'{"id": 0}', b'{"id": 2}']
    assert bodies(running, "failed") == [b'{"id": 1}']
    browser.until(lambda: len(browser.all(MESSAGE)) == 1)
    client.queue_delete("orders")
    choose(browser, 0)
    browser.press("Return", ".chosen")
    browser.toast("0 messages returned, then: there is no queue 'orders' in vhost '/'")


def test_all_dead_letters_return_after_a_question(
    browser: Browser, running: RunningServer, client: BlockingChannel
) -> None:
    browser.start("queues/%2F/failed")
    browser.press("Return all", ".chosen")
    browser.shows("Return all dead letters of failed?", "dialog")
    browser.press("Return all messages", "dialog")
    browser.toast("3 messages returned")
    assert (len(bodies(running, "orders")), bodies(running, "failed")) == (3, [])
    browser.shows("No messages are ready.")


def test_buttons_that_change_the_queue_are_apart_from_the_others(browser: Browser, client: BlockingChannel) -> None:
    browser.start("queues/%2F/failed")
    assert browser.texts(".chosen button") == ["Download JSON", "Download capture", "Return all"]
    choose(browser, 0)
    browser.shows("1 message chosen", ".chosen")
    assert browser.texts(".chosen button") == ["Clear choice", "Download JSON", "Download capture", "Return", "Move"]
    edges = "return [...document.querySelectorAll('.chosen button')].filter((one) => one.offsetWidth)"
    boxes = [one.rect for one in browser.script(edges)]
    assert boxes[3]["x"] - (boxes[2]["x"] + boxes[2]["width"]) > 100
    # There is no dead letter.
    client.basic_publish("", "parked", b"x")
    browser.visit("queues/%2F/parked")
    assert browser.texts(".chosen button") == ["Download JSON", "Download capture"]


def test_chosen_dead_letters_are_moved_to_a_queue_that_is_offered(
    browser: Browser, running: RunningServer, client: BlockingChannel
) -> None:
    browser.start("queues/%2F/failed")
    choose(browser, 1)
    browser.press("Move", ".chosen")
    browser.shows("Move 1 message of failed", "dialog")
    browser.fill("To queue", "park", "dialog")
    browser.until(
        lambda: (
            browser.script("return [...document.querySelectorAll('dialog option')].map((one) => one.value)")
            == ["parked"]
        )
    )
    browser.press("Move messages", "dialog")
    browser.shows("no queue 'park' in vhost '/'", "dialog .problem")
    browser.fill("To queue", "parked", "dialog")
    browser.press("Move messages", "dialog")
    browser.toast("1 message moved to parked")
    assert bodies(running, "parked") == [b'{"id": 1}']


def test_messages_are_downloaded(
    browser: Browser, driver: webdriver.Chrome, client: BlockingChannel, tmp_path: Path
) -> None:
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    browser.start("queues/%2F/failed")
    choose(browser, 0)
    browser.press("Download JSON", ".chosen")
    assert [row["payload"] for row in json.loads(read(tmp_path / "failed.json"))] == ['{"id": 0}']
    browser.press("Clear choice", ".chosen")
    browser.shows("All ready messages", ".chosen")
    browser.press("Download capture", ".chosen")
    lines = read(tmp_path / "failed.jsonl").splitlines()
    assert [json.loads(line)["body"] for line in lines[1:]] == ['{"id": 0}', '{"id": 1}', '{"id": 2}']


def test_a_dead_letter_is_edited_and_published_where_it_was_published_first(
    browser: Browser, running: RunningServer, client: BlockingChannel
) -> None:
    browser.start("queues/%2F/failed")
    browser.click(".messages summary", '"id": 1')
    browser.shows("orders", ".message")
    browser.press("Edit and publish", ".message")
    assert browser.field("Exchange", "dialog").get_attribute("value") == "shop"
    assert browser.field("Routing key", "dialog").get_attribute("value") == "order.new"
    browser.fill("Payload", '{"id": 1, "is_mended": true}', "dialog")
    browser.press("Publish message", "dialog")
    browser.toast("Message published")
    assert bodies(running, "orders") == [b'{"id": 1, "is_mended": true}']
    assert len(bodies(running, "failed")) == 3
    _, properties, _ = client.basic_get("orders")
    assert properties is not None
    assert properties.headers == {"tenant": "a"}
    assert (properties.timestamp, properties.expiration) == (1_700_000_000, None)


def test_deaths_times_and_modes_are_readable(browser: Browser, client: BlockingChannel) -> None:
    client.basic_publish("", "failed", b"x", pika.BasicProperties(expiration="90000", delivery_mode=2))
    browser.start("queues/%2F/failed")
    browser.click(".messages summary", '"id": 0')
    browser.shows("rejected 1 time, from shop with order.new, last 20", ".message")
    browser.shows("1700000000 (2023-11-1", ".message")
    browser.click(".messages summary", "x")
    browser.shows("90000 (1 min 30 s)")
    browser.shows("2 (persistent)")


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_payloads_are_unpacked(
    browser: Browser, client: BlockingChannel, encoding: str, pack: object
) -> None:
    assert callable(pack)
    properties = pika.BasicProperties(content_encoding=encoding)
    client.queue_purge("failed")
    client.basic_publish("", "failed", pack(b'{"deep": [1, 2]}' + b" " * 50), properties)
    client.basic_publish("", "failed", b"\x1f\x8b\xff", properties)
    client.basic_publish("", "failed", pack(b"a" * 3_000_000), properties)
    browser.start("queues/%2F/failed")
    browser.until(lambda: len(browser.all(".messages summary")) == 3)
    for element in browser.all(".messages summary"):
        element.click()
    browser.shows('"deep": [\n', ".messages > li:nth-child(1)")
    browser.shows(f"The payload is not what its content encoding says: {encoding}.", ".messages > li:nth-child(2)")
    browser.shows(f"The first 1.0 MiB, unpacked from {encoding}.", ".messages > li:nth-child(3)")


def test_a_long_payload_is_shown_whole_on_demand(
    browser: Browser, running: RunningServer, client: BlockingChannel
) -> None:
    client.queue_purge("failed")
    client.basic_publish("", "failed", b"x" * 60_000 + b" the end")
    client.basic_publish("", "failed", b"y" * 60_000 + b" the end")
    browser.start("queues/%2F/failed")
    browser.click(".messages summary", "xxx")
    browser.shows("Only the beginning of 58.6 KiB is shown.", ".message")
    browser.press("Show the whole payload", ".message")
    browser.until(lambda: browser.find(".message pre").text.endswith(" the end"))
    client.basic_get("failed", auto_ack=True)
    browser.click(".messages summary", "yyy")
    browser.until(lambda: len(browser.all(".message")) == 2)
    browser.press("Show the whole payload", "li:nth-child(2) .message")
    browser.toast("The message is not at its place any more: refresh the list.")


def test_messages_of_a_stream_are_downloaded_but_not_returned(browser: Browser, client: BlockingChannel) -> None:
    client.queue_declare("history", durable=True, arguments={"x-queue-type": "stream"})
    client.basic_publish("", "history", b"x")
    browser.start("queues/%2F/history")
    choose(browser, 0)
    browser.shows("1 message chosen", ".chosen")
    assert browser.texts(".chosen button") == ["Clear choice", "Download JSON", "Download capture"]
