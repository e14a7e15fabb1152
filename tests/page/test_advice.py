from __future__ import annotations

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


def test_advice_appears_with_its_place_and_is_cleared(browser: Browser, running: RunningServer) -> None:
    browser.start("advice")
    browser.find("main", "No advice.")
    with channel(running.port) as client:
        client.basic_publish("", "nowhere", b"m")
        browser.until(lambda: "(default)" in browser.row("unroutable")[4])
        assert "mandatory" in browser.row("unroutable")[2]
    browser.press("Clear all")
    browser.press("Clear all", "dialog")
    browser.toast("All advice was cleared")
    browser.find("main", "No advice.")
