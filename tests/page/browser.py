"""Drives the page in headless Chromium by its visible text."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    JavascriptException,
    NoSuchElementException,
    StaleElementReferenceException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from compat.waiting import wait_until

T = TypeVar("T")
OTHER_SITE = "enemy.test"
# Visible elements that contain a text, and their text.
VISIBLE = (
    "const textOf = (one) => (one.innerText ?? one.textContent).trim();"
    "const visible = (css, text = '') => [...document.querySelectorAll(css)]"
    "  .filter((one) => one.checkVisibility() && textOf(one).includes(text));"
)
# Errors that may occur while the page is being built, or while a notice covers a part.
PASSING = (
    AssertionError,
    ElementClickInterceptedException,
    IndexError,
    NoSuchElementException,
    StaleElementReferenceException,
    ElementNotInteractableException,
    JavascriptException,
)


def start(chromium: str, chromedriver: str) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1280,900"):
        options.add_argument(f"--{argument}")
    # The names of other sites (test_other_sites.py) lead to this machine, as the owner of a site can arrange it.
    options.add_argument(f"--host-resolver-rules=MAP {OTHER_SITE} 127.0.0.1")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(chromedriver))


class Browser:
    """The page in a browser. Methods wait until elements appear."""

    def __init__(self, driver: webdriver.Chrome, port: int, prefix: str = "") -> None:
        """Drive the page at `prefix`, which is empty or ends with a slash."""
        self.driver = driver
        self.url = f"http://127.0.0.1:{port}/{prefix}"

    # Navigation

    def open(self, authorization: str = "", route: str = "") -> None:
        """Open the page with empty storage; with `authorization`, logged in in this tab."""
        self.driver.get(self.url + "favicon.svg")
        self.script("sessionStorage.clear(); localStorage.clear()")
        if authorization:
            self.script("sessionStorage.setItem('authorization', arguments[0])", authorization)
        self.driver.get(f"{self.url}#/{route}")

    def log_in(self, name: str = "guest", password: str = "guest") -> None:
        self.fill("Username", name)
        self.fill("Password", password)
        self.press("Log in")

    def start(self, route: str = "") -> None:
        """Open a page as guest."""
        self.open("Basic " + base64.b64encode(b"guest:guest").decode(), route)
        self.find("main h1")

    def go(self, route: str) -> None:
        self.driver.execute_script("location.hash = arguments[0]", f"#/{route}")
        self.find("main h1")

    def visit(self, route: str) -> None:
        """Open a page, and return when its first data is shown."""
        self.driver.execute_async_script(
            "const [hash, done] = arguments;"
            "if (location.hash === hash) done();"
            "else { addEventListener('hashchange', () => done(), { once: true }); location.hash = hash; }",
            f"#/{route}",
        )
        self.find("main:not([aria-busy])")

    @property
    def route(self) -> str:
        return str(self.driver.current_url).partition("#/")[2]

    @contextmanager
    def wide(self, width: int, height: int = 900) -> Iterator[None]:
        """Give the page this size, in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    # Content

    def until(self, question: Callable[[], T]) -> T:
        """Wait until the question returns a true value; return the value."""
        found: list[T] = []

        def ask() -> bool:
            try:
                found.append(question())
            except PASSING:
                return False
            return bool(found[-1])

        wait_until(ask)
        return found[-1]

    def all(self, css: str, text: str = "") -> list[WebElement]:
        """Return the visible elements that match and contain the text, without waiting."""
        found: list[WebElement] = self.script(VISIBLE + "return visible(...arguments)", css, text)
        return found

    def find(self, css: str, text: str = "") -> WebElement:
        """Return the first visible element that matches and contains the text."""
        return self.until(lambda: self.all(css, text))[0]

    def texts(self, css: str) -> list[str]:
        """Return the texts of all visible elements that match, as soon as there is one."""
        return self.until(lambda: self.script(VISIBLE + "return visible(arguments[0]).map(textOf)", css))

    def shows(self, text: str, css: str = "main") -> bool:
        """Wait until the element shows the text."""
        return self.until(lambda: text in self.driver.find_element(By.CSS_SELECTOR, css).text)

    def row(self, text: str) -> list[str]:
        """Return the cells of the first row that contains the text."""
        row = "visible('tbody tr', arguments[0])[0]"
        return self.until(lambda: self.script(VISIBLE + f"return [...({row}?.cells ?? [])].map(textOf)", text))

    def script(self, source: str, *arguments: Any) -> Any:
        return self.driver.execute_script(source, *arguments)

    # Actions

    def press(self, label: str, within: str = "body") -> None:
        """Press the last button with exactly this label."""
        exact = "visible(arguments[0], arguments[1]).filter((one) => textOf(one) === arguments[1]).at(-1)"

        def pressed() -> bool:
            # The driver scrolls no further than below the head of the page, which covers what is there.
            scroll = "one?.scrollIntoView({ block: 'nearest' }); return one"
            button = self.script(VISIBLE + f"const one = {exact}; {scroll}", f"{within} button", label)
            assert button is not None
            button.click()
            return True

        self.until(pressed)

    def click(self, css: str, text: str = "") -> None:
        def clicked() -> bool:
            self.find(css, text).click()
            return True

        self.until(clicked)

    def field(self, label: str, within: str = "body") -> WebElement:
        """Return the control with this label."""

        control = (
            "return visible(arguments[0], arguments[1])"
            ".find((one) => textOf(one).replace(/ [*]$/, '') === arguments[1])?.control"
        )
        found: WebElement = self.until(lambda: self.script(VISIBLE + control, f"{within} label.label", label))
        return found

    def fill(self, label: str, value: str, within: str = "body") -> None:
        control = self.field(label, within)
        if control.tag_name == "select":
            self.script(
                "const [control, label] = arguments;"
                "control.value = [...control.options].find((one) => one.text === label).value;"
                "control.dispatchEvent(new Event('change'))",
                control,
                value,
            )
        else:
            self.script("arguments[0].value = ''", control)
            control.send_keys(value)

    def type(self, *keys: str) -> None:
        """Press keys in the element that has the focus."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    @property
    def focused(self) -> str:
        """The text of the element that has the focus."""
        return str(self.script("return document.activeElement.innerText"))

    def tab_to(self, text: str) -> None:
        """Press Tab until the element with exactly this text has the focus."""

        def tabbed() -> bool:
            if self.focused == text:
                return True
            self.type(Keys.TAB)
            return False

        self.until(tabbed)

    def toast(self, text: str) -> None:
        self.shows(text, "#toasts")

    # Looks

    def is_dark(self) -> bool:
        colour = self.script("return getComputedStyle(document.documentElement).backgroundColor")
        return sum(int(one) for one in colour.strip("rgba()").split(",")[:3]) < 200

    def colours(self, canvas: str) -> int:
        """Return the number of colours of a canvas, without transparent pixels."""
        return int(
            self.script(
                "const canvas = document.querySelector(arguments[0]);"
                "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
                "const seen = new Set();"
                "for (let at = 0; at < data.length; at += 4) if (data[at + 3])"
                "  seen.add((data[at] >> 4 << 8) | (data[at + 1] >> 4 << 4) | data[at + 2] >> 4);"
                "return seen.size",
                canvas,
            )
        )

    def screenshot_colours(self) -> list[tuple[float, tuple[int, int, int]]]:
        """Return the most frequent colours of the screen, each with its share."""
        png = self.driver.get_screenshot_as_png()
        found = self.driver.execute_async_script(
            "const [png, done] = arguments;"
            "createImageBitmap(new Blob([Uint8Array.from(atob(png), (one) => one.charCodeAt(0))]))"
            "  .then((bitmap) => { const canvas = document.createElement('canvas');"
            "    canvas.width = bitmap.width; canvas.height = bitmap.height;"
            "    const context = canvas.getContext('2d'); context.drawImage(bitmap, 0, 0);"
            "    const data = context.getImageData(0, 0, bitmap.width, bitmap.height).data; const counts = {};"
            "    for (let at = 0; at < data.length; at += 16) {"
            "      const key = [data[at], data[at + 1], data[at + 2]].join(); counts[key] = (counts[key] ?? 0) + 1; }"
            "    const all = data.length / 16;"
            "    done(JSON.stringify(Object.entries(counts).sort((a, b) => b[1] - a[1]).slice(0, 40)"
            "      .map(([key, count]) => [count / all, key.split(',').map(Number)]))); });",
            base64.b64encode(png).decode(),
        )
        return [(share, tuple(colour)) for share, colour in json.loads(found)]

    def complaints(self) -> list[str]:
        """Return the errors that the browser has logged."""
        return [one["message"] for one in self.driver.get_log("browser") if one["level"] == "SEVERE"]
