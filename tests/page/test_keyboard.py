"""The page without a mouse."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from tests.page.browser import Browser
from tests.running import RunningServer


def test_a_queue_is_added_found_and_deleted_by_keyboard(browser: Browser, running: RunningServer) -> None:
    browser.open()
    browser.find(".login")
    browser.type("guest", Keys.TAB, "guest", Keys.ENTER)
    browser.find("nav")
    browser.type("g", "q")
    browser.shows("Queues and Streams", "main h1")
    browser.type("n")
    browser.find("dialog")
    # The name has the focus because it is required.
    browser.type("typed", Keys.ENTER)
    browser.toast("Queue typed was added")
    browser.find("tbody a", "typed")
    browser.type("/", "typ", Keys.ESCAPE, "j")
    browser.type(Keys.ENTER)
    browser.until(lambda: browser.route == "queues/%2F/typed")
    browser.find(".actions .danger")
    browser.tab_to("Delete")
    browser.type(Keys.ENTER)
    browser.find("dialog")
    browser.tab_to("Delete queue")
    browser.type(Keys.ENTER)
    running.until(lambda server: "typed" not in server.broker.vhosts["/"].queues)


def test_arrow_keys_move_from_row_to_row(browser: Browser) -> None:
    browser.start("exchanges")
    browser.find("tbody a")
    browser.type("j", Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP)
    names = browser.texts("tbody a")
    browser.until(lambda: browser.focused == names[1])


def test_the_list_of_keys_opens_and_escape_closes_it(browser: Browser) -> None:
    browser.start()
    browser.type("?")
    browser.shows("Light or dark", "dialog")
    browser.type(Keys.ESCAPE)
    browser.until(lambda: not browser.all("dialog"))
    browser.type("t")
    browser.until(browser.is_dark)


def test_every_control_has_an_accessible_name(browser: Browser) -> None:
    browser.start()
    for route in ("", "queues", "exchanges/%2F/amq.topic", "messages", "users/guest", "policies", "definitions"):
        browser.go(route)
        nameless = browser.script(
            "return [...document.querySelectorAll('button, a, input, select, textarea')].filter("
            " (one) => !(one.textContent.trim() || one.getAttribute('aria-label') || one.labels?.length))"
            ".map((one) => one.outerHTML)"
        )
        assert nameless == [], route
