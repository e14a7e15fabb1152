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
    row = browser.until(lambda: browser.row("window"))
    assert (row[0], row[4], row[6], row[8], row[11]) == ("window", "60", "60", "0", "held")
    assert row[2].endswith(" s")
    assert all(shown.endswith(" ms") for shown in row[9:11])
    browser.shows("It ended after ")
    # A cell for each message, and a mark for each fault that began.
    assert browser.script("return document.querySelector('.demo-picture.grid title').textContent").startswith(
        "60 messages: 0 to come, "
    )
    assert len(browser.all(".demo-picture .marks path")) == 6
    assert browser.script("return document.querySelector('.demo-picture .bars').getAttribute('d')")
    assert len(browser.all("[aria-label='Fault plan'] tbody tr")) == 6
    # It can be started again.
    browser.find("button", "Start")


def test_all_strategies_are_compared_and_losses_that_were_not_promised_are_named(
    browser: Browser, served: ServedDemo
) -> None:
    browser.fill("Strategy", "all: runs every strategy, one after the other")
    for label, value in (("Messages", "30"), ("Rate", "0"), ("Window", "10")):
        browser.fill(label, value)
    browser.press("Start")
    browser.shows("done", ".title")
    table = "table[aria-label='The proof']"
    browser.until(lambda: len(browser.all(f"{table} tbody tr")) == 4)
    assert [browser.row(name)[11] for name in ("sync", "window", "async")] == ["held"] * 3
    naive = browser.row("naive")
    # Nacks and returns strike it.
    assert "nacked" in naive[8]
    assert naive[11] == "promised nothing"


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
    display.is_over = True
    browser.shows("It ended after ")
    browser.until(lambda: browser.row("is killed")[2:] == ["over", "1 of 1"])
    row = browser.until(lambda: browser.row("async"))
    assert (row[0], row[4], row[6], row[8], row[11]) == ("async", "300", "300", "0", "held")
    gauges = browser.texts(".gauge")
    assert gauges[0].split("\n")[1:] == ["300", "of 300"]


def test_losses_of_the_naive_strategy_are_shown_with_reasons(demo: tuple[Browser, EmbeddedBroker]) -> None:
    browser, broker = demo
    display = Display(broker, Plain(), has_page=True)
    display.run(STRATEGIES["naive"], 200, 2, 20, 500)
    assert display.results[0]["lost"]
    browser.start("demo")
    row = browser.until(lambda: browser.row("naive"))
    lost = display.results[0]["lost"]
    assert row[8] == f"{sum(lost.values())}: {', '.join(f'{count} {reason}' for reason, count in lost.items())}"
    assert row[11] == "promised nothing"
    browser.shows("no confirms awaited")
