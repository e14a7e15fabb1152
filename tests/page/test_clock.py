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


def test_events_that_the_time_brings_are_listed(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("brief", arguments={"x-expires": 7_200_000})
        browser.start("clock")
        row = browser.until(lambda: browser.row("The unused queue 'brief' in vhost '/' is deleted"))
        assert row[1] in ("1 h 59 min", "2 h 0 min")
        browser.click("tbody a", "brief")
        browser.until(lambda: browser.route == "queues/%2F/brief")
        client.queue_delete("brief")
        browser.go("clock")
        browser.shows("Nothing waits for its time.")


def test_an_advance_that_closes_channels_asks_first(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("held", arguments={"x-consumer-timeout": 600_000})
        client.basic_publish("", "held", b"x")
        client.basic_get("held")
        browser.start("clock")
        browser.until(lambda: browser.row("Channel 1 of"))
        before = running.ask(lambda server: server.clock.offset())
        browser.press("+1m")
        browser.toast("The clock was advanced by 1m")
        browser.press("+30m")
        browser.shows("1 channel will be closed. Channel 1 of", "dialog")
        browser.press("Cancel", "dialog")
        assert running.ask(lambda server: server.clock.offset()) - before < 120_000
        browser.press("+30m")
        browser.press("Advance", "dialog")
        browser.toast("The clock was advanced by 30m")
        running.until(lambda server: not next(iter(server.broker.connections)).channels)


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
