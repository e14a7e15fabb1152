"""The page behind `management_path_prefix`, as behind a gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium import webdriver

from tests.page.browser import Browser
from tests.page.client import channel
from tests.page.routes import LISTS
from tests.page.test_queues import add_queue
from tests.running import RunningServer

PREFIX = "pre/fix/"


@pytest.fixture(scope="module")
def running() -> Iterator[RunningServer]:
    with RunningServer(management=True, management_path_prefix=f"/{PREFIX}") as server:
        yield server


@pytest.fixture
def browser(driver: webdriver.Chrome, running: RunningServer) -> Iterator[Browser]:
    """Provide a browser; fail if it has met an error, or has asked for anything that is not there."""
    browser = Browser(driver, running.server.ports["management"], PREFIX)
    browser.complaints()
    yield browser
    # Browsers ask for this file at the root, which belongs to the gateway.
    assert [one for one in browser.complaints() if "/favicon.ico - " not in one] == []
    driver.get("about:blank")


def test_the_root_leads_to_the_page_where_a_user_logs_in(browser: Browser, running: RunningServer) -> None:
    browser.open()
    browser.driver.get(f"http://127.0.0.1:{running.server.ports['management']}/")
    browser.log_in()
    browser.shows("Overview", "main h1")
    assert browser.driver.current_url.startswith(browser.url)


def test_each_page_is_loaded_without_an_error(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("boats")
        client.basic_consume("boats", print)
        browser.start()
        for route in (*LISTS, "queues/%2F/boats", "exchanges/%2F/amq.topic", "users/guest", "vhosts/%2F"):
            browser.visit(route)
            assert not browser.all("main .problem"), route


def test_a_queue_is_added_and_its_messages_are_counted_live(browser: Browser, running: RunningServer) -> None:
    browser.start()
    add_queue(browser, "crates")
    browser.click("tbody a", "crates")
    browser.shows("crates", "main h1")
    with channel(running.port) as client:
        for _ in range(137):
            client.basic_publish("", "crates", b"m")
    browser.shows("137", "main")
