from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

from amqp_broker.cli.own.demo import Display, Plain
from amqp_broker.demo.strategies import STRATEGIES
from amqp_broker.testing import EmbeddedBroker
from tests.page.browser import Browser


@pytest.fixture
def demo(driver: webdriver.Chrome, tmp_path: Path) -> Iterator[tuple[Browser, EmbeddedBroker]]:
    """Provide a broker that the demo kills, and a browser that may log errors about that."""
    with EmbeddedBroker(data_dir=tmp_path / "data") as broker:
        port = int(broker.management_url.rpartition(":")[2])
        yield Browser(driver, port), broker
        driver.get("about:blank")


def test_without_a_demo_the_page_shows_how_to_start_one(browser: Browser) -> None:
    browser.start("demo")
    browser.shows("No demo is running")
    browser.shows("amqp-broker demo confirms")


def test_a_demo_is_shown_until_its_proof(demo: tuple[Browser, EmbeddedBroker]) -> None:
    browser, broker = demo
    display = Display(broker, Plain(), has_page=True)
    browser.start("demo")
    browser.shows("No demo is running")
    seen: list[str] = []

    # The publisher waits while this reads the page.
    def look(figures: dict[str, Any]) -> None:
        if figures["connection"] == "blocked" and not seen:
            browser.shows("blocked")
            seen.append(browser.row("blocks the connection")[2])

    display._view = type("Look", (Plain,), {"show": lambda _, figures: look(figures)})()
    display.run(STRATEGIES["async"], 300, 1, 20, 0)
    assert seen == ["now"]
    browser.shows("closed")
    browser.until(lambda: browser.row("is killed")[2:] == ["over", "1 of 1"])
    row = browser.until(lambda: browser.row("at least once"))
    assert (row[0], row[3], row[4], row[6], row[7]) == ("async", "300", "300", "none", "held")
    gauges = browser.texts(".gauge")
    assert gauges[0].split("\n")[1:] == ["300", "of 300"]


def test_losses_of_the_naive_strategy_are_shown_with_reasons(demo: tuple[Browser, EmbeddedBroker]) -> None:
    browser, broker = demo
    display = Display(broker, Plain(), has_page=True)
    display.run(STRATEGIES["naive"], 200, 2, 20, 500)
    assert display.results[0]["lost"]
    browser.start("demo")
    row = browser.until(lambda: browser.row("at most once"))
    assert row[6] == ", ".join(f"{count} {reason}" for reason, count in display.results[0]["lost"].items())
    assert row[7] == "held"
    browser.shows("no confirms awaited")
