from __future__ import annotations

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


def test_the_clock_is_advanced_frozen_and_resumed(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("short-lived", arguments={"x-expires": 3_600_000})
    browser.start("clock")
    browser.shows("Running")
    browser.press("Freeze")
    browser.shows("Frozen")
    assert running.ask(lambda server: server.clock.is_frozen)
    browser.fill("Duration", "1h1m")
    browser.press("Advance")
    browser.toast("The clock was advanced by 1h1m")
    running.until(lambda server: "short-lived" not in server.broker.vhosts["/"].queues)
    browser.press("Resume")
    browser.shows("Running")


def test_an_invalid_duration_is_refused_with_the_reason(browser: Browser) -> None:
    browser.start("clock")
    browser.fill("Duration", "soon")
    browser.press("Advance")
    browser.shows("'soon' is not a duration")


def test_events_of_a_message_come_from_the_event_log(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.event_logs.start_all())
    with channel(running.port) as client:
        client.queue_declare("way")
        client.basic_publish("", "way", b"x")
        browser.start("messages")
        browser.shows("Listening")
        # The publish happened before the page was opened.
        client.basic_get("way", auto_ack=True)
    browser.click(".event.deliver")
    browser.press("Show all its events")
    browser.until(lambda: len(browser.texts(".trail-list li")) == 2)
    running.ask(lambda server: server.broker.event_logs.stop_all())
