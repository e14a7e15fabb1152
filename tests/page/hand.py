"""A hand at the mouse, which counts its clicks: on this broker's page and on RabbitMQ's."""

from __future__ import annotations

from collections.abc import Callable

from selenium import webdriver
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from compat.waiting import wait_until
from tests.page.browser import PASSING

# The element with exactly this text, or else the first that contains it. RabbitMQ's buttons are inputs with a value.
FOUND = (
    "const [css, text] = arguments;"
    "const textOf = (one) => (one.type === 'submit' ? one.value || one.innerText : one.innerText ?? '').trim();"
    "const all = [...document.querySelectorAll(css)].filter((one) => one.checkVisibility());"
    "const found = all.find((one) => textOf(one) === text) ?? all.find((one) => textOf(one).includes(text));"
    "found?.scrollIntoView({ block: 'center' });"
    "return found ?? null;"
)


class Hand:
    """Clicks count, and a choice from a list counts as one; typing and looking do not."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.clicks = 0

    def _do(self, css: str, text: str, action: Callable[[WebElement], object]) -> None:
        """Do something with an element as soon as it is there and can take it."""

        def done() -> bool:
            try:
                element = self.driver.execute_script(FOUND, css, text)
                if element is None:
                    return False
                action(element)
            except PASSING:
                return False
            return True

        wait_until(done)

    def click(self, css: str, text: str = "") -> None:
        self._do(css, text, lambda element: element.click())
        self.clicks += 1

    def choose(self, css: str, option: str) -> None:
        self._do(css, "", lambda element: Select(element).select_by_visible_text(option))
        self.clicks += 1

    def _write(self, element: WebElement, value: str) -> None:
        self.driver.execute_script("arguments[0].value = ''", element)
        element.send_keys(value)

    def type(self, css: str, value: str) -> None:
        self._do(css, "", lambda element: self._write(element, value))

    def label(self, label: str, value: str) -> None:
        """Type into the field with this label."""
        control = (
            "return [...document.querySelectorAll('label')].filter((one) => one.checkVisibility())"
            ".find((one) => one.innerText.replace(/ [*]$/, '').trim() === arguments[0])?.control ?? null"
        )

        def typed() -> bool:
            element = self.driver.execute_script(control, label)
            if element is None:
                return False
            try:
                self._write(element, value)
            except PASSING:
                return False
            return True

        wait_until(typed)

    def confirm(self) -> None:
        """Agree to a question of the browser."""

        def agreed() -> bool:
            try:
                self.driver.switch_to.alert.accept()
            except NoAlertPresentException:
                return False
            return True

        wait_until(agreed)
        self.clicks += 1

    def sees(self, text: str) -> None:
        """Wait until the page shows a text."""
        wait_until(lambda: text in self.driver.execute_script("return document.body.innerText"))

    def sees_no(self, text: str) -> None:
        """Wait until the page no longer shows a text."""
        wait_until(lambda: text not in self.driver.execute_script("return document.body.innerText"))
