from __future__ import annotations

from amqp_broker.management.page.files import FOLDER
from tests.page.browser import Browser
from tests.running import RunningServer


def test_the_page_says_whose_it_is_and_what_it_is_compatible_with(browser: Browser, running: RunningServer) -> None:
    version = ".".join(running.server.broker.profile.version.split(".")[:2])
    browser.open()
    assert browser.find(".login h1").text == "amqp-broker"
    browser.shows(f"compatible with RabbitMQ {version}", ".login")
    assert browser.driver.title == "amqp-broker"
    browser.log_in()
    browser.shows(f"compatible with RabbitMQ {version}", "nav .brand")
    assert browser.find("nav .brand").text.startswith("amqp-broker\n")
    browser.until(lambda: browser.driver.title == "Overview \u2013 amqp-broker")
    assert browser.find("nav .brand svg.mark").is_displayed()


def test_the_mark_of_the_page_is_that_of_its_icon(browser: Browser) -> None:
    browser.open()
    drawn = browser.until(lambda: browser.script("return document.querySelector('svg.mark path').getAttribute('d')"))
    icon = (FOLDER / "favicon.svg").read_text("utf-8")
    # The icon draws the lines one by one.
    assert [line for line in drawn.split("M") if line and f"M{line}" not in icon] == []


def test_the_tools_of_testers_stand_together(browser: Browser) -> None:
    browser.start()
    labels = browser.texts("nav h2, nav a span:only-of-type")
    assert labels[labels.index("Testing") + 1 :] == ["Faults", "Live Messages", "Advice", "Clock", "Confirm Demo"]
