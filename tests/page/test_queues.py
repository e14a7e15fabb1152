"""Queues and their messages on the page."""

from __future__ import annotations

import json
from functools import partial

from selenium.webdriver.common.keys import Keys

from compat.waiting import wait_until
from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer

ORDER = json.dumps({"id": 7, "customer": {"name": "Zoë"}, "paid": True}, ensure_ascii=False)


def ready(running: RunningServer, name: str) -> int:
    return running.ask(lambda server: server.broker.vhosts["/"].queues[name].ready_count)


def has_ready(running: RunningServer, name: str, count: int) -> bool:
    return ready(running, name) == count


def add_queue(browser: Browser, name: str) -> None:
    browser.go("queues")
    browser.press("Add queue")
    browser.fill("Name", name, "dialog")
    browser.press("Add queue", "dialog")
    browser.toast(f"Queue {name} was added")


def test_a_queue_an_exchange_and_a_binding_are_added(browser: Browser, running: RunningServer) -> None:
    browser.start()
    add_queue(browser, "orders")
    assert browser.row("orders")[:3] == ["/", "orders", "classic"]
    browser.go("exchanges")
    browser.press("Add exchange")
    browser.fill("Name", "shop", "dialog")
    browser.fill("Type", "topic", "dialog")
    browser.press("Add exchange", "dialog")
    browser.click("tbody a", "shop")
    browser.click("summary", "Bind a queue")
    browser.fill("Name", "orders", ".more")
    browser.fill("Routing key", "order.#", ".more")
    browser.press("Bind")
    browser.find(".diagram .node.queue", "orders")
    browser.shows("order.#", ".diagram")
    assert browser.row("orders")[:2] == ["shop", "order.#"]
    browser.fill("Routing key", "order.created", ".part:last-child")
    browser.fill("Payload", ORDER, ".part:last-child")
    browser.press("Publish message")
    browser.toast("Message published")
    assert ready(running, "orders") == 1
    browser.press("Delete")
    browser.shows("It has 1 binding, which will be deleted.", "dialog")
    browser.press("Delete exchange", "dialog")
    browser.toast("Exchange shop was deleted")


def test_peeking_does_not_consume_a_message(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("peeked")
        for number in range(3):
            client.basic_publish("", "peeked", json.dumps({"id": number, "text": f"<b>{number}"}).encode())
    browser.start("queues/%2F/peeked")
    browser.until(lambda: len(browser.all(".messages summary")) == 3)
    browser.click(".messages summary", '"id": 1')
    assert browser.find("pre.json").text == '{\n  "id": 1,\n  "text": "<b>1"\n}'
    browser.press("Raw")
    assert browser.find(".payload pre").text == '{"id": 1, "text": "<b>1"}'
    browser.find("input[name=search]").send_keys("<b>2")
    browser.until(lambda: len(browser.all(".messages summary")) == 1)
    assert ready(running, "peeked") == 3
    with channel(running.port) as client:
        method, _, body = client.basic_get("peeked")
        assert body is not None
        assert not method.redelivered


def test_messages_are_published_got_moved_and_purged(browser: Browser, running: RunningServer) -> None:
    browser.start()
    add_queue(browser, "here")
    add_queue(browser, "there")
    browser.click("tbody a", "here")
    browser.click("#tab-publish")
    browser.fill("Payload", ORDER, "#panel-publish")
    for count in (1, 2, 3):
        browser.press("Publish message", "#panel-publish")
        wait_until(partial(has_ready, running, "here", count))
    browser.until(lambda: browser.find(".facts").text.startswith("Ready\n3\n"))

    browser.click("#tab-get")
    browser.press("Get messages")
    browser.find("#panel-get .messages summary", "Zoë")
    assert ready(running, "here") == 3
    browser.fill("Ack mode", "Automatic ack", "#panel-get")
    browser.press("Get messages")
    browser.until(lambda: ready(running, "here") == 2)

    browser.click("#tab-move")
    browser.fill("To queue", "nowhere", "#panel-move")
    browser.press("Move messages")
    browser.shows("nowhere", "#panel-move .problem")
    browser.fill("To queue", "there", "#panel-move")
    browser.press("Move messages")
    browser.toast("2 messages moved to there")
    assert (ready(running, "here"), ready(running, "there")) == (0, 2)

    browser.go("queues/%2F/there")
    browser.until(lambda: browser.find(".facts").text.startswith("Ready\n2\n"))
    browser.press("Purge")
    browser.shows("2 ready messages will be lost. 0 unacknowledged messages will be kept.", "dialog")
    browser.press("Purge messages", "dialog")
    browser.until(lambda: ready(running, "there") == 0)
    browser.until(lambda: browser.find(".facts").text.startswith("Ready\n0\n"))
    browser.press("Delete")
    browser.shows("It has 0 messages, 0 bindings and 0 consumers, which will be removed.", "dialog")
    browser.press("Delete queue", "dialog")
    browser.toast("Queue there was deleted")
    assert browser.until(lambda: browser.route == "queues")
    assert "there" not in running.ask(lambda server: server.broker.vhosts["/"].queues)


def test_a_refusal_is_shown_in_the_dialog_and_keeps_the_input(browser: Browser) -> None:
    browser.start("queues")
    browser.press("Add queue")
    browser.fill("Name", "amq.mine", "dialog")
    browser.press("Add queue", "dialog")
    browser.shows("refused", "dialog .problem")
    assert browser.field("Name", "dialog").get_attribute("value") == "amq.mine"
    browser.press("Cancel", "dialog")


def test_changes_by_others_appear_without_a_refresh(browser: Browser, running: RunningServer) -> None:
    browser.start("queues")
    with channel(running.port) as client:
        client.queue_declare("sudden")
        browser.find("tbody a", "sudden")
        client.basic_publish("", "sudden", b"x")
        browser.until(lambda: browser.row("sudden")[5] == "1")
        client.queue_delete("sudden")
        browser.until(lambda: "sudden" not in browser.find("main").text)


def test_a_deleted_queue_is_reported(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("short")
        browser.start("queues/%2F/short")
        browser.find("#tab-peek")
        client.queue_delete("short")
        browser.shows("does not exist (any more)")


def test_messages_of_a_stream_are_peeked_at(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
        client.basic_publish("", "log", b"first")
    browser.start("queues/%2F/log")
    browser.find(".messages summary", "first")
    browser.until(lambda: [one.text for one in browser.all("[role=tab]")] == ["Peek", "Publish"])


def test_dead_letters_return_to_where_they_came_from(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("graves")
        client.queue_declare("work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "graves"})
        for _ in range(2):
            client.basic_publish("", "work", b"m")
            method, _, _ = client.basic_get("work")
            client.basic_nack(method.delivery_tag, requeue=False)
        client.basic_publish("", "graves", b"alive")
        wait_until(partial(has_ready, running, "graves", 3))
        browser.start("queues/%2F/graves")
        browser.press("Move", "[role=tablist]")
        browser.press("Return dead letters")
        browser.shows("2 messages returned, then: a message has no x-death header that names another queue")
    assert (ready(running, "work"), ready(running, "graves")) == (2, 1)


def test_enter_applies_a_filter_at_once_and_opens_the_only_hit(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        for name in ("filtered.one", "filtered.two"):
            client.queue_declare(name, durable=True)
    browser.start("queues")
    browser.find("input[type=search]").send_keys("filtered", Keys.ENTER)
    browser.until(lambda: browser.texts("tbody a") == ["filtered.one", "filtered.two"])
    assert browser.route == "queues"
    browser.find("input[type=search]").send_keys(".two", Keys.ENTER)
    browser.until(lambda: browser.route == "queues/%2F/filtered.two")


def test_a_filter_that_is_kept_is_seen_and_cleared(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        for name in ("kept.one", "kept.two"):
            client.queue_declare(name, durable=True)
    browser.start("queues")
    assert browser.all("main button", "Clear filter") == browser.all(".count.filtered") == []
    browser.find("input[type=search]").send_keys("kept.o")
    browser.find(".count.filtered", "1 of ")
    browser.visit("exchanges")
    browser.visit("queues")
    browser.find(".count.filtered", "1 of ")
    browser.press("Clear filter")
    browser.until(lambda: len(browser.texts("tbody a")) > 1)
    assert browser.all("main button", "Clear filter") == browser.all(".count.filtered") == []
    assert browser.find("input[type=search]").get_attribute("value") == ""
