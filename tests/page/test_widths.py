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


# The names of a list, as far as they show, and the heights of its rows.
NAMES_SHOWN = (
    "return [...document.querySelectorAll('main tbody a')].filter((one) => one.scrollWidth <= one.clientWidth)"
    ".map((one) => one.innerText)"
)
ROW_HEIGHTS = (
    "return [...new Set([...document.querySelectorAll('main tbody tr:not(.gap)')]"
    ".map((one) => Math.round(one.getBoundingClientRect().height)))]"
)


@pytest.mark.parametrize("width", [390, 1280, 2560])
@pytest.mark.parametrize("shown", ["retry", "retry-6"], ids=["many", "few"])
def test_names_that_differ_in_their_middle_look_different(
    browser: Browser, running: RunningServer, width: int, shown: str
) -> None:
    names = [f"company.eu-central-1.orders.customer-{number:02}.notifications.retry.v2" for number in range(70)]
    with channel(running.port) as client, browser.wide(width):
        for name in names:
            client.queue_declare(name, durable=True)
        browser.start("queues")
        search = "customer-6" if shown == "retry-6" else "company.eu"
        browser.find("input[type=search]").send_keys(search)
        wanted = [name for name in names if search in name]

        def begins() -> bool:
            # Of many, those near the screen are elements.
            found = browser.script(NAMES_SHOWN)
            return len(found) >= min(len(wanted), 15) and found == wanted[: len(found)]

        def ends() -> bool:
            # The page may become longer: all rows of a long list are as high as the highest one.
            browser.script("scrollTo(0, document.body.scrollHeight)")
            return bool(browser.script(NAMES_SHOWN)[-1:] == wanted[-1:])

        for is_shown in (begins, ends):
            browser.until(is_shown)
            heights = browser.script(ROW_HEIGHTS)
            # The last row has no border.
            assert max(heights) - min(heights) <= 1
            assert browser.script(SCROLLED) == []
        for name in names:
            client.queue_delete(name)


def test_a_very_long_name_is_shortened_in_its_middle(browser: Browser, running: RunningServer) -> None:
    name = "first." + "x" * 200 + ".last"
    with channel(running.port) as client, browser.wide(390):
        client.queue_declare(name, durable=True)
        browser.start("queues")
        browser.find("input[type=search]").send_keys("first.")
        browser.until(lambda: len(browser.all("tbody tr")) == 1)
        link = browser.find("tbody a")
        assert (len(link.text), link.text[:6], link.text[-5:]) == (79, "first.", ".last")
        assert link.get_attribute("title") == name
        client.queue_delete(name)


@pytest.mark.parametrize("width", [360, 390])
def test_the_pages_are_in_a_menu_on_a_narrow_screen(browser: Browser, width: int) -> None:
    with browser.wide(width):
        browser.start("queues")
        assert browser.all("nav .pages a") == []
        assert browser.find("nav .menu").text == "Queues and Streams"
        browser.click("nav .menu")
        assert len(browser.texts("nav .pages a")) == 18
        assert browser.script(BEYOND, "nav")[1] == []
        browser.click("nav .pages a", "Clock")
        browser.until(lambda: browser.find("nav .menu").text == "Clock")
        assert browser.all("nav .pages a") == []


def test_no_button_of_a_narrow_page_covers_another_one(browser: Browser, routes: list[str]) -> None:
    with browser.wide(390):
        browser.start()
        for route in routes:
            browser.visit(route)
            assert browser.script(COVERED) == [], route


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
