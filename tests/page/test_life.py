"""A queue's page says why a message is in the queue or not, with a picture of its life."""

from __future__ import annotations

from collections.abc import Iterator

import pika
import pytest
from selenium.webdriver.common.keys import Keys

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


@pytest.fixture
def logged(running: RunningServer) -> Iterator[None]:
    running.ask(lambda server: server.broker.event_logs.start_all())
    yield
    running.ask(lambda server: server.broker.event_logs.stop_all())


def publish(running: RunningServer, key: str, name: str) -> None:
    """Publish a message to `work`, which is bound with `job`; it is rejected and becomes a dead letter of `failed`."""
    with channel(running.port) as client:
        client.exchange_declare("jobs")
        client.queue_declare("failed")
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed"}
        client.queue_declare("work", durable=True, arguments=letters)
        client.queue_bind("work", "jobs", "job")
        client.basic_publish("jobs", key, b"body of " + name.encode(), pika.BasicProperties(message_id=name))
        method, _, _ = client.basic_get("work")
        if method is not None:
            client.basic_reject(method.delivery_tag, requeue=False)


def test_the_log_is_started_on_the_page(browser: Browser, running: RunningServer) -> None:
    publish(running, "job", "before")
    browser.start("queues/%2F/work")
    browser.shows("The virtual host has no event log.")
    browser.press("Start the event log")
    browser.shows("No message has come here since the event log was started.")
    browser.shows("It began after ")
    assert running.ask(lambda server: server.broker.event_logs.of(server.broker.vhosts["/"]) is not None)
    running.ask(lambda server: server.broker.event_logs.stop_all())


def test_a_rejected_message_is_followed_to_its_dead_letter(
    browser: Browser, running: RunningServer, logged: None
) -> None:
    publish(running, "job", "m-1")
    browser.start("queues/%2F/work")
    browser.click(".lives summary", "m-1")
    browser.find(".lives summary", "gone")
    browser.shows("without requeue. Its dead letter (rejected) went to 'failed'.")
    # The lanes are a client, the exchange, the queue, and the queue of dead letters.
    names = "return [...document.querySelectorAll('.life-drawing .lane-name title')].map((one) => one.textContent)"
    assert browser.script(names)[1:] == ["exchange jobs", "queue work", "queue failed"]
    assert browser.texts(".life-drawing .event-name") == ["publish", "deliver", "nack", "dead letter"]
    assert [one.split()[1] for one in browser.texts(".life .trail-list li")] == ["publish", "deliver", "nack", "dead"]
    browser.go("queues/%2F/failed")
    browser.find(".lives summary", "here, ready")


def test_a_message_that_never_came_is_found_by_its_id(browser: Browser, running: RunningServer, logged: None) -> None:
    publish(running, "jbo", "m-2")
    browser.start("queues/%2F/work")
    browser.shows("No message has come here")
    browser.find("input[aria-label='Search the messages of the virtual host']").send_keys("m-2")
    browser.click(".lives summary", "not here")
    browser.shows("It was published to the exchange 'jobs' with routing key 'jbo', which led to no queue.")
    browser.shows("This queue is bound to the exchange 'jobs' with 'job'.")
    browser.find("input[aria-label='Search the messages of the virtual host']").send_keys("x")
    browser.shows("No message in the event log matches.")


def test_a_viewer_does_not_see_messages(browser: Browser, running: RunningServer) -> None:
    publish(running, "job", "m-3")
    running.ask(lambda server: server.broker.users.add("onlooker", "secret", tags=("monitoring",)))
    browser.open()
    browser.log_in("onlooker", "secret")
    browser.go("queues/%2F/work")
    browser.shows("Bindings")
    assert not browser.all("h2", "Why is this message")


def test_a_test_is_copied(browser: Browser, running: RunningServer, logged: None) -> None:
    publish(running, "job", "m-4")
    browser.start("queues/%2F/work")
    browser.press("Copy as pytest")
    browser.shows("A test of what was seen", "dialog")
    text = str(browser.find("dialog textarea").get_attribute("value"))
    assert "b'body of m-4'" in text
    permission = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": browser.url.rstrip("/")}
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", permission)
    browser.press("Copy")
    browser.shows("The test was copied", "#toasts")
    copied = browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")
    assert copied == text


def test_the_message_with_just_the_id_comes_first_and_the_reach_of_the_log_is_said(
    browser: Browser, running: RunningServer, logged: None
) -> None:
    publish(running, "job", "m-7")
    for number in range(70, 75):
        publish(running, "job", f"m-{number}")
    browser.start("queues/%2F/work")
    browser.shows("The event log reaches back to 20")
    # The answer takes long.
    browser.script(
        "const ask = fetch; window.fetch = async (path, ...rest) => {"
        "  if (path.includes('lives')) await new Promise((done) => { window.answer = done; });"
        "  return ask(path, ...rest); }"
    )
    browser.find(".bar input[aria-label='Search the messages of the virtual host']").send_keys("m-7", Keys.ENTER)
    browser.shows("Searching\N{HORIZONTAL ELLIPSIS}")
    browser.until(lambda: browser.script("return Boolean(window.answer)"))
    browser.script("answer()")
    browser.until(lambda: len(browser.all(".lives summary")) == 6)
    assert "m-7 " in browser.texts(".lives summary")[0]
    assert "Searching" not in browser.find("main").text
