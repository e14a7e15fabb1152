from __future__ import annotations

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


def test_time_is_moved_frozen_and_resumed(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("short-lived", arguments={"x-expires": 3_600_000})
    browser.start("clock")
    browser.shows("It runs")
    browser.press("Freeze")
    browser.shows("It is frozen")
    assert running.ask(lambda server: server.clock.is_frozen)
    browser.fill("Duration", "1h1m")
    browser.press("Advance")
    browser.toast("1h1m have passed")
    running.until(lambda server: "short-lived" not in server.broker.vhosts["/"].queues)
    browser.press("Resume")
    browser.shows("It runs")


def test_a_duration_that_is_none_is_refused_with_its_reason(browser: Browser) -> None:
    browser.start("clock")
    browser.fill("Duration", "soon")
    browser.press("Advance")
    browser.shows("'soon' is no duration")


def test_the_way_of_a_message_comes_from_the_record_where_there_is_one(
    browser: Browser, running: RunningServer
) -> None:
    running.ask(lambda server: server.broker.records.start_all())
    with channel(running.port) as client:
        client.queue_declare("way")
        client.basic_publish("", "way", b"x")
        browser.start("messages")
        browser.shows("Listening")
        # The publish was before the page was opened.
        client.basic_get("way", auto_ack=True)
    browser.click(".event.deliver")
    browser.press("Its whole way")
    browser.until(lambda: len(browser.texts(".trail-list li")) == 2)
    running.ask(lambda server: server.broker.records.stop_all())
