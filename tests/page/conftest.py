from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from selenium import webdriver

from tests.page.browser import Browser, start
from tests.running import RunningServer


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        # CI must not skip these tests.
        assert not os.environ.get("CI"), "Chromium and chromedriver are not installed"
        pytest.skip("needs Chromium and chromedriver (Debian: chromium, chromium-driver)")
    driver = start(chromium, chromedriver)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def running() -> Iterator[RunningServer]:
    with RunningServer(management=True) as server:
        yield server


@pytest.fixture
def browser(driver: webdriver.Chrome, running: RunningServer) -> Iterator[Browser]:
    """Provide a browser; fail if it has logged errors at the end."""
    browser = Browser(driver, running.server.ports["management"])
    browser.complaints()
    yield browser
    # Expected answers, such as 404 or 403.
    assert [one for one in browser.complaints() if "Failed to load resource" not in one] == []
    # Disconnect the live updates.
    driver.get("about:blank")
