from __future__ import annotations

from amqp_broker.broker.lab.advice import PLACES_MAX
from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


def test_advice_appears_with_its_place_and_is_cleared(browser: Browser, running: RunningServer) -> None:
    browser.start("advice")
    browser.find("main", "No advice.")
    with channel(running.port) as client:
        client.basic_publish("", "nowhere", b"m")
        browser.until(lambda: "exchange (default)" in browser.row("unroutable")[5])
        assert "mandatory" in browser.row("unroutable")[1]
    browser.press("Clear all")
    browser.press("Clear all", "dialog")
    browser.toast("All advice was cleared")
    browser.find("main", "No advice.")


def test_a_place_leads_to_its_objects_and_is_whole_on_a_telephone(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client, browser.wide(390):
        client.basic_publish("", "nowhere", b"m")
        client.queue_declare("brief")
        browser.start("advice")
        browser.until(lambda: browser.row("transient-queue"))
        for part in ("Declare it durable", "vhost /, user guest"):
            assert browser.find("tbody td", part).is_displayed()
        browser.click("tbody a", "brief")
        browser.until(lambda: browser.route == "queues/%2F/brief")
        browser.visit("advice")
        browser.click("tbody a", "(default)")
        browser.shows("Exchange")
        client.queue_delete("brief")
    running.ask(lambda server: server.broker.advice.clear())


def test_a_habit_has_one_row_whose_places_are_unfolded(browser: Browser, running: RunningServer) -> None:
    browser.start("advice")
    with channel(running.port) as client:
        for number in range(PLACES_MAX + 7):
            client.queue_declare(f"q{number}")
        client.basic_publish("", "nowhere", b"m")
        browser.until(lambda: browser.row("unroutable"))
    # The flood of one habit does not hide the other, which is newer.
    assert [text.strip() for text in browser.texts("tbody td:first-child")] == ["unroutable", "transient-queue"]
    row = browser.until(lambda: browser.row("transient-queue"))
    assert row[2] == str(PLACES_MAX + 7)
    seen = [line for line in row[5].split("\n") if line]
    assert [line.partition("queue ")[2].split(",")[0] for line in seen[:3]] == ["q199", "q198", "q197"]
    assert seen[3:] == ["and in 197 more places", "and 7 times in places that are not kept"]
    browser.press("Show all")
    browser.until(lambda: len(browser.all("tbody li")) == PLACES_MAX + 1)
    assert browser.focused == "Show fewer"
    browser.press("Show fewer")
    browser.until(lambda: len(browser.all("tbody li")) == 4)
    browser.press("Clear all")
    browser.press("Clear all", "dialog")
    browser.find("main", "No advice.")


def test_only_the_chosen_virtual_host_is_advised(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.add_vhost("quiet"))
    with channel(running.port) as client:
        client.basic_publish("", "nowhere", b"m")
    browser.start("advice")
    browser.until(lambda: browser.row("unroutable"))
    browser.script(
        "const one = document.getElementById('vhost'); one.value = 'quiet'; one.dispatchEvent(new Event('change'))"
    )
    browser.shows("No advice.")
    running.ask(lambda server: server.broker.advice.clear())
    running.ask(lambda server: server.broker.delete_vhost("quiet"))
