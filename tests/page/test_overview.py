from __future__ import annotations

import re

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


def test_numbers_and_charts_move_while_a_client_publishes(browser: Browser, running: RunningServer) -> None:
    browser.start()
    browser.find(".chart canvas")
    with channel(running.port) as client:
        client.queue_declare("live")
        for _ in range(500):
            client.basic_publish("", "live", b"x")
        browser.until(lambda: browser.find(".tile.wide b").text == "500")
        browser.until(lambda: re.search(r"in [1-9]", browser.find(".tile.wide").text))
        assert browser.find(".tile", "Connections").text.endswith("1")
    browser.until(lambda: browser.find(".tile", "Connections").text.endswith("0"))
    # Lines and areas in two colours, besides the grid and its labels.
    assert browser.colours(".chart canvas") > 3
    assert browser.shows("Memory")
    assert browser.row("http") == ["http", "127.0.0.1", str(running.server.ports["management"])]


def test_the_memory_of_the_node_is_listed_by_category(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("large")
        client.basic_publish("", "large", bytes(3_000_000))
        browser.start()
        browser.until(lambda: browser.row("Classic queues and their messages")[1].startswith(("2.", "3.")))
        assert browser.row("Classic queues and their messages")[1].endswith(" MiB")
        assert browser.row("Channels and unacked messages")
        shares = browser.texts("table[aria-label='Memory by category'] td:last-child")
        assert 95 <= sum(int(share.removesuffix(" %")) for share in shares) <= 105
        client.queue_delete("large")


def test_the_dark_theme_applies_to_charts(browser: Browser) -> None:
    browser.start()
    browser.find(".chart canvas")
    assert not browser.is_dark()
    light = browser.screenshot_colours()
    assert sum(light[0][1]) > 600
    browser.click("#theme")
    browser.until(browser.is_dark)
    browser.until(lambda: sum(browser.screenshot_colours()[0][1]) < 150)
    # The text is light: the page is not just black.
    assert any(sum(colour) > 450 for _, colour in browser.screenshot_colours())
    browser.driver.refresh()
    browser.find("nav")
    assert browser.is_dark()


def test_the_theme_follows_the_system(browser: Browser) -> None:
    browser.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    try:
        browser.open()
        browser.find(".login")
        assert browser.is_dark()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_charts_show_samples_from_before_the_login(browser: Browser, running: RunningServer) -> None:
    browser.open()
    browser.log_in()
    browser.find(".chart canvas")
    # Five minutes in steps of five seconds, all before the page was opened.
    times = browser.driver.execute_async_script(
        "import('/js/live.js').then((module) => arguments[0](module.live.queued.times))"
    )
    assert len(times) >= 60
    assert times == sorted(times)
    assert times[-1] - times[0] >= 290
