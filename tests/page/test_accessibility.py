"""Every page and dialog follows WCAG 2 at level AA, as far as a machine can tell, in both themes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

from tests.page import axe
from tests.page.browser import Browser
from tests.page.furnished import furnished
from tests.running import RunningServer

# Buttons that may open a dialog.
OPENERS = "main .title .actions button, main button.link, header [aria-haspopup=dialog]"


@pytest.fixture(scope="module")
def script() -> str:
    if shutil.which("npm") is None:
        # CI must not skip these tests.
        assert not os.environ.get("CI"), "npm is not installed"
        pytest.skip("needs npm")
    return axe.source()


@pytest.fixture(scope="module")
def routes(running: RunningServer) -> Iterator[list[str]]:
    with furnished(running) as found:
        yield found


@pytest.fixture(params=[("light", 1280), ("dark", 1280), ("light", 360)], ids=lambda one: "-".join(map(str, one)))
def theme(request: pytest.FixtureRequest, browser: Browser) -> Iterator[str]:
    theme, width = request.param
    with browser.wide(width):
        browser.start()
        browser.script("localStorage.setItem('theme', arguments[0])", theme)
        browser.driver.refresh()
        browser.find("main h1")
        yield theme


def dialogs(browser: Browser, script: str) -> Iterator[str]:
    """Open each dialog of a page, and yield what axe finds in it."""
    count = browser.script("return document.querySelectorAll(arguments[0]).length", OPENERS)
    for number in range(count):
        is_open = browser.script(
            "document.querySelectorAll(arguments[0])[arguments[1]].click();"
            "return document.querySelector('dialog[open]') !== null",
            OPENERS,
            number,
        )
        # Buttons without a question act at once: those of the clock, and what pauses a list.
        if is_open:
            yield from axe.violations(browser, script, "dialog[open]")
            browser.script("document.querySelector('dialog[open]').close()")


def test_no_page_or_dialog_violates_a_rule(browser: Browser, routes: list[str], theme: str, script: str) -> None:
    assert browser.is_dark() == (theme == "dark")
    found = []
    for route in routes:
        browser.visit(route)
        browser.script("for (const one of document.querySelectorAll('main details')) one.open = true")
        found += [f"{route}: {one}" for one in axe.violations(browser, script)]
        if route != "clock":
            found += [f"{route}, dialog: {one}" for one in dialogs(browser, script)]
    assert not found, "\n".join(found)


def test_the_login_violates_no_rule(browser: Browser, script: str) -> None:
    browser.open()
    browser.find(".login")
    assert axe.violations(browser, script) == []


def test_a_violation_would_be_found(browser: Browser, script: str) -> None:
    """Otherwise the other tests could not fail."""
    browser.start()
    browser.script(
        "document.querySelector('main h1').insertAdjacentHTML('afterend', '<button></button><p id=faint>A text</p>');"
        "document.getElementById('faint').style.color = '#ddd'"
    )
    found = "\n".join(axe.violations(browser, script))
    assert "button-name" in found
    assert "color-contrast" in found
