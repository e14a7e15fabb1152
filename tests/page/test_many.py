from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer

COUNT = 1000


@pytest.fixture(autouse=True, scope="module")
def many(running: RunningServer) -> Iterator[None]:
    with channel(running.port) as client:
        for number in range(COUNT):
            client.queue_declare(f"many.{number:04}")
        yield


def test_a_thousand_queues_are_paged_and_filtered_by_the_broker(browser: Browser) -> None:
    browser.start("queues")
    browser.until(lambda: browser.find(".count").text == "1,000")
    assert len(browser.all("tbody tr")) == 100
    browser.press("Next")
    browser.find("tbody a", "many.0100")
    browser.shows("Page 2 of 10")
    browser.script("scrollTo(0, document.body.scrollHeight)")
    browser.until(lambda: browser.script("return scrollY") > 1000)
    browser.find("input[type=search]").send_keys("many.042")
    browser.until(lambda: browser.find(".count").text == "10 of 1,000")
    browser.until(lambda: len(browser.all("tbody tr")) == 10)
    browser.press("Name")
    browser.until(lambda: browser.texts("tbody a")[0] == "many.0429")


def test_new_numbers_do_not_rebuild_a_row(browser: Browser, running: RunningServer) -> None:
    """Only changed numbers are written, so a page with a thousand queues stays fast."""
    browser.start("queues")
    browser.find("tbody a", "many.0000")
    browser.script(
        "window.built = 0;"
        "new MutationObserver((changes) => { for (const one of changes) window.built += one.addedNodes.length; })"
        ".observe(document.querySelector('tbody'), { childList: true })"
    )
    with channel(running.port) as client:
        for number in range(2000):
            client.basic_publish("", f"many.{number % 100:04}", b"x")
    browser.until(lambda: [browser.row(f"many.{number:04}")[5] for number in (0, 50, 99)] == ["20"] * 3)
    assert browser.script("return window.built") == 0
