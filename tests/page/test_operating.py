"""Tasks of an operator beside objects: shovels, feature flags, tracing, churn, explanations."""

from __future__ import annotations

from functools import partial

import pika
from selenium.webdriver.common.keys import Keys

from compat.waiting import wait_until
from tests.page.attacked import ask
from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


def ready(running: RunningServer, name: str) -> int:
    return running.ask(lambda server: server.broker.vhosts["/"].queues[name].ready_count)


def has_ready(running: RunningServer, name: str, count: int) -> bool:
    return ready(running, name) == count


def test_a_shovel_is_added_restarted_and_deleted(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("here", durable=True)
        client.queue_declare("there", durable=True)
        client.basic_publish("", "here", b"x")
    uri = f"amqp://127.0.0.1:{running.port}"
    browser.start("shovels")
    browser.shows("No shovels.")
    browser.press("Add shovel")
    for label, value in (("Name", "mine"), ("Source URI", uri), ("Source name", "here")):
        browser.fill(label, value, "dialog")
    for label, value in (("Destination URI", uri), ("Destination name", "there")):
        browser.fill(label, value, "dialog")
    browser.press("Add shovel", "dialog")
    browser.toast("Shovel mine was added")
    wait_until(partial(has_ready, running, "there", 1))
    browser.until(lambda: browser.row("mine")[1:4] == ["mine", "running", "here"])
    browser.press("Restart")
    browser.toast("Shovel mine was restarted")
    with channel(running.port) as client:
        client.basic_publish("", "here", b"y")
    wait_until(partial(has_ready, running, "there", 2))
    browser.press("Delete")
    browser.press("Delete shovel", "dialog")
    browser.shows("No shovels.")
    assert ask(running, "GET", "/api/parameters/shovel") == []


def test_deprecated_features_in_use_are_named(browser: Browser, running: RunningServer) -> None:
    browser.start("features")
    assert browser.row("stream_queue")[1] == "enabled"
    assert browser.row("transient_nonexcl_queues")[1:3] == ["permitted", "permitted by default"]
    assert not browser.all(".banner")
    with channel(running.port) as client:
        client.queue_declare("transient")
        browser.shows("transient_nonexcl_queues Queues that are neither", ".banner")
        browser.visit("")
        browser.shows("transient_nonexcl_queues Queues that are neither", ".banner")
        client.queue_delete("transient")
    browser.until(lambda: not browser.all(".banner"))


def test_churn_is_counted(browser: Browser, running: RunningServer) -> None:
    before = ask(running, "GET", "/api/overview")["churn_rates"]["queue_created"]
    browser.start()
    with channel(running.port) as client:
        client.queue_declare("churned", exclusive=True)
        browser.until(lambda: browser.row("Queues")[1] == str(before + 1))
    browser.until(lambda: "0" not in (browser.row("Connections")[1], browser.row("Connections")[3]))


def test_a_virtual_host_is_traced_and_keeps_its_description(browser: Browser, running: RunningServer) -> None:
    ask(
        running,
        "PUT",
        "/api/vhosts/traced",
        {"description": "Orders", "tags": ["shop"], "default_queue_type": "quorum"},
    )
    browser.start("vhosts/traced")
    browser.press("Start tracing")
    browser.toast("Tracing was started")
    running.until(lambda server: server.broker.vhosts["traced"].tracing.is_on)
    browser.press("Stop tracing")
    running.until(lambda server: not server.broker.vhosts["traced"].tracing.is_on)
    vhost = ask(running, "GET", "/api/vhosts/traced")
    assert (vhost["description"], vhost["tags"], vhost["default_queue_type"]) == ("Orders", ["shop"], "quorum")


def test_a_queue_shows_its_messages_by_place_and_its_consumer_capacity(
    browser: Browser, running: RunningServer
) -> None:
    with channel(running.port) as client:
        client.queue_declare("split", durable=True)
        for mode in (1, 2, 2):
            client.basic_publish("", "split", b"12345", pika.BasicProperties(delivery_mode=mode))
        browser.start("queues/%2F/split")
        browser.until(lambda: browser.row("Number") == ["Number", "3", "3", "0", "3", "2", "0"])
        assert browser.row("Size")[:2] == ["Size", "15 B"]
        browser.shows("Consumer capacity")
        assert "%" not in browser.find(".facts div", "Consumer capacity").text
        client.basic_consume("split", lambda *_: None, auto_ack=True)
        browser.until(lambda: "%" in browser.find(".facts div", "Consumer capacity").text)


def test_terms_are_explained(browser: Browser) -> None:
    browser.start("users/guest")
    browser.visit("users/guest")
    browser.press("Terms", "main")
    browser.shows("what the user may see and change", "dialog")
    browser.type(Keys.ESCAPE)
    browser.until(lambda: not browser.all("dialog"))
    browser.visit("queues")
    browser.press("Terms", "main")
    browser.shows("Messages that wait for a consumer.", "dialog")
    browser.type(Keys.ESCAPE)


def test_hidden_columns_stay_hidden(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("seen", durable=True)
    heads = (
        "return [...document.querySelectorAll('main th')].filter((one) => one.offsetWidth).map((one) => one.innerText)"
    )
    browser.start("queues")
    browser.find("tbody a", "seen")
    assert "Total" in browser.script(heads)
    browser.press("View")
    browser.field("Total", "dialog").click()
    browser.press("Apply", "dialog")
    browser.until(lambda: "Total" not in browser.script(heads))
    browser.driver.refresh()
    browser.find("tbody a", "seen")
    assert "Total" not in browser.script(heads)
    assert browser.script(heads)[:2] == ["Virtual host", "Name"]


def test_a_dialog_ends_with_its_page(browser: Browser) -> None:
    browser.start("policies")
    browser.press("Add policy")
    browser.find("dialog")
    browser.driver.back()
    browser.until(lambda: not browser.all("dialog"))
    browser.start("policies")
    browser.press("Add policy")
    browser.find("dialog")
    browser.go("queues")
    browser.until(lambda: not browser.all("dialog"))
