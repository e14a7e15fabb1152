"""The report of a trace in a browser, from its file (amqp_broker/pipeline)."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from amqp_broker.pipeline.page_document import document
from amqp_broker.pipeline.plots import Chart, Without
from amqp_broker.pipeline.report_page import SCRIPTS, SEARCH, table
from tests.page.browser import Browser
from tests.page.hostile import ATTACKS, WATCH, findings

START = 1_790_000_040_000
STARTS = range(START, START + 3000, 1000)
# The attacks without characters that turn the direction of a text.
MARKUP = [one for one in ATTACKS if one.isascii()]


@pytest.fixture
def browser(driver: webdriver.Chrome) -> Browser:
    browser = Browser(driver, 0)
    browser.complaints()
    return browser


def show(browser: Browser, path: Path, body: str) -> None:
    """Open a report with this body."""
    file = path / "report.html"
    file.write_text(document("A report", body, SCRIPTS, ["uplot.css", "report.css"]), "utf-8")
    browser.driver.get(file.as_uri())


def test_a_plot_shows_the_values_at_the_pointer(browser: Browser, tmp_path: Path) -> None:
    lines = {"orders": {START: 1.0, START + 1000: 12_345.6, START + 2000: 3.0}, "mail": {START + 1000: 0.25}}
    show(browser, tmp_path, f'<div class="charts" id="a">{Chart("Arrivals", "a second", STARTS, lines).html()}</div>')
    # A line, and a point between gaps.
    assert browser.colours("canvas") > 2
    # The pointer goes to the middle.
    ActionChains(browser.driver).move_to_element(browser.driver.find_element(By.CSS_SELECTOR, ".u-over")).perform()
    assert browser.texts(".u-legend .u-value") == ["14:14:01", "12,346", "0.25"]
    assert browser.complaints() == []


def test_names_are_text_in_plots(browser: Browser, tmp_path: Path) -> None:
    watch = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    try:
        chart = Chart("Depth", "messages", STARTS, {name: {START: 1.0} for name in MARKUP}, Without.LAST)
        show(browser, tmp_path, f'<div class="charts" id="a">{chart.html()}</div>')
        labels = [one.get_property("textContent") for one in browser.driver.find_elements(By.CSS_SELECTOR, ".u-label")]
        assert labels == ["UTC", *MARKUP]
        assert findings(browser) == []
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", watch)


def test_a_search_finds_rows_in_all_tables(browser: Browser, tmp_path: Path) -> None:
    queues = [{"queue": f"Queue {number}", "open": number} for number in range(120)]
    heads = {"queue": "queue", "open": "messages"}
    show(browser, tmp_path, f"{SEARCH}{table(queues, heads)}{table(queues[:10], heads)}")
    assert (len(browser.all("tbody tr")), browser.texts(".note")) == (60, ["50 of 120 rows. Show all"])
    field = browser.find("input")
    field.send_keys("queue 11")
    assert [one.text for one in browser.all("tbody tr")] == [
        "Queue 11 11",
        *(f"Queue {n} {n}" for n in range(110, 120)),
    ]
    assert browser.texts(".note") == ["11 of 11 matching rows.", "0 of 0 matching rows."]
    field.clear()
    field.send_keys(" ")
    browser.click("button", "Show all")
    assert len(browser.all("tbody tr")) == 130
    assert browser.complaints() == []
