"""The page while the broker goes away and comes back: on ports of its own, so that it does."""

from __future__ import annotations

from selenium import webdriver

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


def test_the_page_goes_on_when_the_broker_is_back(driver: webdriver.Chrome) -> None:
    with RunningServer(management=True) as first:
        port, management_port = first.port, first.server.ports["management"]
        browser = Browser(driver, management_port)
        browser.start("queues")
        browser.until(lambda: browser.find(".live").text == "Live")
    browser.until(lambda: browser.find(".live").text == "Reconnecting")
    with RunningServer(management=True, port=port, management_port=management_port):
        browser.until(lambda: browser.find(".live").text == "Live")
        with channel(port) as client:
            client.queue_declare("after")
            browser.find("tbody a", "after")
        driver.get("about:blank")


def test_who_is_unknown_to_the_broker_that_comes_back_logs_in_anew(driver: webdriver.Chrome) -> None:
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
