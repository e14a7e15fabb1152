"""The page while the broker restarts, on fixed ports."""

from __future__ import annotations

import re
import threading

from selenium import webdriver

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


def test_the_page_continues_after_a_restart(driver: webdriver.Chrome) -> None:
    with RunningServer(management=True) as first:
        port, management_port = first.port, first.server.ports["management"]
        browser = Browser(driver, management_port)
        browser.start("queues")
        browser.until(lambda: browser.find(".live").text == "Live")
    browser.until(lambda: re.fullmatch(r"Reconnecting, last seen \d+ s ago", browser.find(".live").text))
    assert browser.all("main.lost")
    with RunningServer(management=True, port=port, management_port=management_port):
        browser.until(lambda: browser.find(".live").text == "Live")
        with channel(port) as client:
            client.queue_declare("after")
            browser.find("tbody a", "after")
        assert not browser.all("main.lost")
        driver.get("about:blank")


def test_a_password_changed_by_a_restart_leads_to_the_login(driver: webdriver.Chrome) -> None:
    with RunningServer(management=True) as first:
        port, management_port = first.port, first.server.ports["management"]
        browser = Browser(driver, management_port)
        browser.start()
        browser.until(lambda: browser.find(".live").text == "Live")
    with RunningServer(management=True, port=port, management_port=management_port, default_pass="another"):
        browser.find(".login")
        browser.log_in(password="another")
        browser.shows("Overview", "main h1")
        driver.get("about:blank")


def test_the_numbers_of_a_silent_broker_are_grey(browser: Browser, running: RunningServer) -> None:
    """A broker that hangs keeps its connections."""
    browser.start("queues")
    browser.until(lambda: browser.find(".live").text == "Live")
    released = threading.Event()
    running.server.loop.call_soon_threadsafe(released.wait, 60)
    try:
        browser.until(lambda: "last seen" in browser.find(".live").text)
        assert browser.all("main.lost")
    finally:
        released.set()
    browser.until(lambda: browser.find(".live").text == "Live")
