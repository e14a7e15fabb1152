"""No page is wider than the screen, from a telephone to a large display, however long its names are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.page.browser import Browser
from tests.page.client import channel
from tests.page.furnished import furnished
from tests.running import RunningServer

WIDTHS = (360, 768, 1280, 2560)
# The elements that are wider than the page and are not in a part that scrolls or is cut by itself.
BEYOND = (
    "const inner = (one) => { for (let up = one.parentElement; up && up !== document.body; up = up.parentElement)"
    "  if (getComputedStyle(up).overflowX !== 'visible') return true; return false; };"
    "return [document.documentElement.scrollWidth - innerWidth,"
    " [...document.querySelectorAll(arguments[0] + ' *')].filter((one) => one.checkVisibility() && !inner(one)"
    "   && one.getBoundingClientRect().width && one.getBoundingClientRect().right > innerWidth + 0.5)"
    "   .map((one) => one.outerHTML.slice(0, 120)).slice(0, 3)]"
)
# The tables that must be scrolled sideways to see their last column.
SCROLLED = (
    "return [...document.querySelectorAll('main .table')].filter((one) => one.checkVisibility()"
    " && one.scrollWidth > one.clientWidth).map((one) => `${one.ariaLabel} ${one.scrollWidth} ${one.clientWidth}`)"
)
# The titles of the columns of all tables.
HEADS = "return [...document.querySelectorAll('main th')].filter((one) => one.offsetWidth).map((one) => one.innerText)"
# The controls of a page that lie above each other.
COVERED = (
    "const all = [...document.querySelectorAll('main .title :is(button, input, label)')]"
    "  .filter((one) => one.offsetWidth).map((one) => [one, one.getBoundingClientRect()]);"
    "return all.filter(([one, a]) => all.some(([other, b]) => !one.contains(other) && !other.contains(one)"
    "   && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)).map(([one]) => one.outerHTML)"
)


@pytest.fixture(scope="module")
def routes(running: RunningServer) -> Iterator[list[str]]:
    with furnished(running) as found:
        yield found


def test_a_narrow_table_of_queues_keeps_its_important_columns(browser: Browser, routes: list[str]) -> None:
    with browser.wide(360):
        browser.start("queues")
        browser.visit("queues")
        assert browser.script(HEADS)[-3:] == ["Name", "Ready", "Unacked"]
        assert browser.script(COVERED) == []
    # They come back with the room.
    with browser.wide(2560):
        browser.until(lambda: len(browser.script(HEADS)) == 12)
        # A short page cannot be scrolled.
        assert browser.script("return document.documentElement.scrollHeight - innerHeight") == 0


def test_other_narrow_tables_keep_what_they_are_about(browser: Browser, routes: list[str]) -> None:
    wanted = {"exchanges": "To", "advice": "Effect and remedy"}
    with browser.wide(360):
        browser.start()
        for start, title in wanted.items():
            browser.visit([route for route in routes if route.startswith(start)][-1])
            assert title in browser.script(HEADS)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_screen(browser: Browser, routes: list[str], width: int) -> None:
    found = []
    with browser.wide(width):
        browser.start()
        for route in routes:
            browser.visit(route)
            browser.script("for (const one of document.querySelectorAll('main details')) one.open = true")
            beyond, elements = browser.script(BEYOND, "body")
            scrolled = browser.script(SCROLLED)
            if beyond > 0 or elements or scrolled:
                found.append(f"{route[:30]}: {beyond} {elements} {scrolled}")
    assert not found, "\n".join(found)


NAMES = [f"{number:02d}-orders.eu-central-1.customers.notify.retry-{number:02d}" for number in range(70)]


@pytest.fixture(scope="module")
def queues(running: RunningServer) -> Iterator[None]:
    with channel(running.port) as client:
        for name in NAMES:
            client.queue_declare(name, durable=True, arguments={"x-max-length": 5, "x-message-ttl": 60_000})
        yield
        for name in NAMES:
            client.queue_delete(name)


def choose_vhost(browser: Browser, name: str) -> None:
    change = "const one = document.getElementById('vhost'); one.value = arguments[0];"
    browser.script(change + " one.dispatchEvent(new Event('change'))", name)


@pytest.mark.parametrize(("shown", "first"), [("retry", 0), ("retry-6", 60)], ids=["many", "few"])
def test_a_narrow_list_of_long_names_keeps_the_numbers_of_messages_and_consumers(
    browser: Browser, queues: None, shown: str, first: int
) -> None:
    with browser.wide(390):
        browser.start("queues")
        browser.find("input[type=search]").send_keys(shown)
        browser.until(lambda: browser.row(NAMES[first]))
        assert browser.script(HEADS) == ["Name", "Ready", "Unacked", "Consumers"]
        assert browser.script(SCROLLED) == []
        browser.press("View")
        browser.shows("No room on this screen for: ", "dialog")
        browser.press("Cancel", "dialog")


def test_a_long_name_is_shortened_in_its_middle(browser: Browser, queues: None) -> None:
    with browser.wide(390):
        browser.start("queues")
        browser.find("input[type=search]").send_keys("retry-61")
        browser.until(lambda: len(browser.all("tbody tr")) == 1)
        start, end = browser.find("tbody .start"), browser.find("tbody .end")
        assert end.text == NAMES[61][-10:]
        assert browser.script("return arguments[0].textContent", browser.find("tbody a")) == NAMES[61]
        assert browser.script("return arguments[0].getClientRects().length", start) == 1
        assert start.size["height"] < 1.5 * end.size["height"]


def test_a_chosen_virtual_host_gives_way_before_the_state(browser: Browser, queues: None) -> None:
    with browser.wide(700):
        browser.start("queues")
        browser.until(lambda: {"Virtual host", "State"} <= set(browser.script(HEADS)))
        choose_vhost(browser, "/")
        browser.until(lambda: "Virtual host" not in browser.script(HEADS) and "State" in browser.script(HEADS))
        choose_vhost(browser, "")


def test_a_wide_screen_is_used(browser: Browser, queues: None) -> None:
    with browser.wide(2560):
        browser.start("queues")
        browser.until(lambda: len(browser.script(HEADS)) == 12)
        assert browser.script("return document.querySelector('main .table').offsetWidth") > 2200
        browser.press("View")
        assert "No room" not in browser.find("dialog").text
        browser.press("Cancel", "dialog")
