from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

from amqp_broker.cli.own.demo import Display, Plain
from amqp_broker.demo.served_demo import ServedDemo, install
from amqp_broker.demo.strategies import STRATEGIES
from amqp_broker.testing import EmbeddedBroker
from tests.page.browser import Browser
from tests.running import RunningServer


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


@pytest.fixture
def served(browser: Browser, running: RunningServer) -> Iterator[ServedDemo]:
    """Provide the demo of a broker like that of `amqp-broker serve`, shown in the browser."""
    running.ask(install)
    demo = running.server.node.demo
    assert isinstance(demo, ServedDemo)
    browser.start("demo")
    yield demo
    running.ask(lambda server: demo.stop())
    running.until(lambda server: demo.state not in ("running", "stopping"))
    running.server.node.demo = None


def test_a_demo_is_started_on_the_page_and_shown_until_its_proof(browser: Browser, served: ServedDemo) -> None:
    browser.fill("Strategy", "window: publishes a window of messages and waits for all confirms")
    for label, value in (("Messages", "60"), ("Rate", "0"), ("Window", "10"), ("Seed", "7")):
        browser.fill(label, value)
    for name in ("block", "late", "too_late"):
        browser.click(f"input[name='fault {name}']")
    browser.press("Start")
    browser.shows("done", ".title")
    row = browser.until(lambda: browser.row("at least once"))
    assert (row[0], row[3], row[4], row[6], row[7]) == ("window", "60", "60", "none", "held")
    assert len(browser.all("[aria-label='Fault plan'] tbody tr")) == 6
    # It can be started again.
    browser.find("button", "Start")


def test_a_demo_is_stopped_on_the_page(browser: Browser, served: ServedDemo) -> None:
    browser.fill("Messages", "10000")
    browser.fill("Rate", "10")
    browser.press("Start")
    browser.until(lambda: browser.row("nacks"))
    browser.shows("running", ".title")
    assert not browser.all("button", "Start")
    browser.press("Stop")
    browser.shows("stopped", ".title")
    browser.find("button", "Start")
    assert served.state == "stopped"


def test_a_wrong_choice_is_explained_in_the_form(browser: Browser, served: ServedDemo) -> None:
    browser.fill("Rate", "10001")
    browser.press("Start")
    browser.find(".problem", "rate must be a whole number from 0 to 10000, not 10001")
    assert served.state == "none"


def test_a_viewer_can_press_nothing_but_terms(browser: Browser, running: RunningServer, served: ServedDemo) -> None:
    running.ask(lambda server: server.broker.users.add("viewer", "secret", tags=("monitoring",)))
    browser.open()
    browser.log_in("viewer", "secret")
    browser.go("demo")
    browser.shows("No demo is running")
    assert browser.texts("main button") == ["Terms"]


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
