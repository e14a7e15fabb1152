"""The page without a mouse."""

from __future__ import annotations

import re

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


def test_a_dialog_keeps_the_focus_and_returns_it(browser: Browser) -> None:
    browser.start("queues")
    browser.find("[data-key=n]")
    browser.tab_to("Add queue")
    browser.type(Keys.ENTER)
    browser.find("dialog")
    for _ in range(40):
        browser.type(Keys.TAB)
        # Between the last element and the first, the browser's own controls have the focus.
        assert browser.script(
            "return document.activeElement.closest('dialog') || document.activeElement === document.body"
        )
    browser.type(Keys.ESCAPE)
    browser.until(lambda: not browser.all("dialog"))
    assert browser.focused == "Add queue"


def test_the_focus_is_visible_and_not_covered(browser: Browser) -> None:
    browser.start("users/guest")
    browser.visit("users/guest")
    seen = set()
    for _ in range(45):
        browser.type(Keys.TAB)
        what, outline, is_covered = browser.script(
            "const one = document.activeElement; const { outlineStyle, outlineWidth } = getComputedStyle(one);"
            "const box = one.getBoundingClientRect(); const head = document.querySelector('header');"
            "const top = head.contains(one) || one.closest('nav, .skip') ? 0 : head.getBoundingClientRect().bottom;"
            "return [one.outerHTML, `${outlineStyle} ${outlineWidth}`, box.top < top || box.bottom > innerHeight]"
        )
        if what.startswith("<body"):
            break
        assert outline in ("solid 2px", "auto 1px"), what
        assert not is_covered, what
        seen.add(what)
    assert len(seen) > 25


def test_screen_readers_hear_pages_and_filters(browser: Browser) -> None:
    browser.start()
    browser.visit("exchanges")
    assert browser.script("return document.getElementById('said').textContent") == "Exchanges"
    browser.type("/", "amq.t")
    said = "return document.getElementById('said').textContent"
    browser.until(lambda: re.fullmatch(r"Exchanges: 1 of \d+", browser.script(said)))
    assert browser.script("return document.querySelector('tbody [role=rowheader]').textContent") == "amq.topic"


def test_a_page_that_a_link_opened_has_the_focus(browser: Browser) -> None:
    browser.start("exchanges")
    browser.find("tbody a", "amq.topic")
    browser.type("j", Keys.ENTER)
    browser.until(lambda: browser.route.startswith("exchanges/"))
    browser.until(lambda: browser.script("return document.activeElement.id") == "main")
