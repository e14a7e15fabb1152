"""Lists of ten thousand queues: the broker pages, sorts and filters them, and few rows are elements."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from tests.page.attacked import ask
from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer

COUNT = 10_000
# A screen has about thirty rows.
ROWS_MAX = 70
ROWS = "return document.querySelectorAll('tbody tr').length"
INDEXES = "return [...document.querySelectorAll('tbody tr[aria-rowindex]')].map((one) => Number(one.ariaRowIndex))"


@pytest.fixture(autouse=True, scope="module")
def many(running: RunningServer) -> None:
    plain = {"vhost": "/", "durable": False, "auto_delete": False, "arguments": {}}
    ask(running, "POST", "/api/definitions", {"queues": [{**plain, "name": f"many.{n:04}"} for n in range(COUNT)]})


@pytest.fixture
def all_rows(browser: Browser) -> Iterator[Browser]:
    """Provide the list with all rows on one page."""
    browser.start()
    browser.script("localStorage.setItem('view Queues and Streams', JSON.stringify({ size: 0, hidden: [] }))")
    browser.driver.refresh()
    browser.find("nav")
    browser.visit("queues")
    browser.until(lambda: browser.find(".count").text == "10,000")
    yield browser
    browser.script("localStorage.clear()")


def test_queues_are_paged_and_filtered_by_the_broker(browser: Browser) -> None:
    browser.start("queues")
    browser.until(lambda: browser.find(".count").text == "10,000")
    assert browser.script(ROWS) <= ROWS_MAX
    browser.press("Next")
    browser.find("tbody a", "many.0100")
    browser.shows("Page 2 of 100")
    assert min(browser.script(INDEXES)) == 102
    browser.script("scrollTo(0, document.body.scrollHeight)")
    browser.find("tbody a", "many.0199")
    browser.until(lambda: browser.script("return scrollY") > 1000)
    browser.find("input[type=search]").send_keys("many.042")
    browser.until(lambda: browser.find(".count").text == "10 of 10,000")
    browser.until(lambda: len(browser.all("tbody tr")) == 10)
    browser.press("Name")
    browser.until(lambda: browser.texts("tbody a")[0] == "many.0429")


def test_the_user_chooses_the_rows_on_a_page(browser: Browser) -> None:
    browser.start("queues")
    browser.press("View")
    browser.fill("Rows on a page", "500", "dialog")
    browser.press("Apply", "dialog")
    browser.shows("Page 1 of 20")
    assert browser.script(ROWS) <= ROWS_MAX
    browser.driver.refresh()
    browser.shows("Page 1 of 20")


def test_all_rows_are_on_a_page_that_has_few_of_them(all_rows: Browser) -> None:
    assert all_rows.script("return document.querySelector('table').ariaRowCount") == str(COUNT + 1)
    assert all_rows.script(INDEXES)[:2] == [2, 3]
    for share in (0.25, 0.5, 0.99, 1.0, 0.0):
        all_rows.script("scrollTo(0, (document.body.scrollHeight - innerHeight) * arguments[0])", share)
        # The rows on the screen are known soon, and no row is an element far from it.
        wanted = min(COUNT - 1, max(0, round(COUNT * share)))
        all_rows.until(lambda at=wanted: any(abs(index - 2 - at) < 40 for index in all_rows.script(INDEXES)))  # type: ignore[misc]
        assert all_rows.script(ROWS) <= ROWS_MAX
    height = all_rows.script(
        "return document.querySelector('tbody').offsetHeight"
        " / document.querySelector('tbody tr:not(.gap)').getBoundingClientRect().height"
    )
    assert abs(height - COUNT) < 2


def test_all_rows_are_sorted_and_filtered(all_rows: Browser) -> None:
    all_rows.press("Name")
    all_rows.until(lambda: all_rows.texts("tbody a")[0] == "many.9999")
    all_rows.find("input[type=search]").send_keys("many.1")
    all_rows.until(lambda: all_rows.find(".count").text == "1,000 of 10,000")
    all_rows.until(lambda: all_rows.texts("tbody a")[0] == "many.1999")
    assert all_rows.script(ROWS) <= ROWS_MAX
    all_rows.script("scrollTo(0, document.body.scrollHeight)")
    all_rows.find("tbody a", "many.1000")


def test_arrow_keys_reach_rows_that_were_not_there(all_rows: Browser) -> None:
    all_rows.find("tbody a", "many.0000")
    all_rows.type("j", *[Keys.ARROW_DOWN] * 80)
    all_rows.until(lambda: all_rows.focused == "many.0080")
    assert all_rows.script(ROWS) <= ROWS_MAX
    # The row with the focus stays while others are looked at.
    all_rows.script("scrollTo(0, document.body.scrollHeight)")
    all_rows.find("tbody a", "many.9999")
    assert all_rows.focused == "many.0080"
    all_rows.type(Keys.ARROW_UP)
    all_rows.until(lambda: all_rows.focused == "many.0079")


def test_new_numbers_do_not_rebuild_a_row(browser: Browser, running: RunningServer) -> None:
    browser.start("queues")
    browser.find("tbody a", "many.0000")
    browser.script(
        "window.built = 0;"
        "new MutationObserver((changes) => { for (const one of changes) window.built += one.addedNodes.length; })"
        ".observe(document.querySelector('tbody'), { childList: true })"
    )
    with channel(running.port) as client:
        for number in range(400):
            client.basic_publish("", f"many.{number % 20:04}", b"x")
    browser.until(lambda: [browser.row(f"many.{number:04}")[5] for number in (0, 10, 19)] == ["20"] * 3)
    assert browser.script("return window.built") == 0
