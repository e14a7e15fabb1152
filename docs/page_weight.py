"""Weighs the page beside RabbitMQ's, in Chromium: `python -m docs.page_weight` prints the table of docs/web-page.md.

Each page is opened with an empty cache by a user who has logged in before, several times in turn. RabbitMQ 4.3 is
installed as `python -m compat.oracles` does it.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from selenium import webdriver
from selenium.webdriver.common.by import By

from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ
from compat.waiting import wait_until
from tests.page.browser import start
from tests.running import RunningServer

RUNS: Final = 9
# The files of a page: the requests of the HTTP API go on as long as it is open.
FILES: Final = (
    "const files = performance.getEntriesByType('resource').filter((one) => !/[/](api|_broker)[/]/.test(one.name));"
    "const all = [...performance.getEntriesByType('navigation'), ...files];"
    "const [paint] = performance.getEntriesByName('first-contentful-paint');"
    "return [all.length, all.reduce((sum, one) => sum + one.transferSize, 0), paint ? paint.startTime : 0,"
    " document.querySelector('h1')?.textContent ?? '']"
)


@dataclass(frozen=True)
class Weight:
    """The median of several visits."""

    requests: float
    transferred_bytes: float
    first_paint_ms: float


def log_in(driver: webdriver.Chrome, url: str) -> None:
    driver.get(url)
    wait_until(lambda: bool(driver.find_elements(By.CSS_SELECTOR, "input[type=password]")))
    name, password = driver.find_elements(By.CSS_SELECTOR, "form input:not([type=submit]):not([type=hidden])")[:2]
    name.send_keys("guest")
    password.send_keys("guest")
    password.submit()
    wait_until(lambda: is_overview(driver))


def is_overview(driver: webdriver.Chrome) -> bool:
    """Return whether the overview is shown. The page may be replaced meanwhile, so the browser itself looks."""
    return bool(driver.execute_script(FILES)[3].startswith("Overview"))


def visit(driver: webdriver.Chrome) -> Weight:
    """Open the overview with an empty cache."""
    driver.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    driver.refresh()
    wait_until(lambda: is_overview(driver) and driver.execute_script(FILES)[2] > 0)
    requests, transferred, paint, _ = driver.execute_script(FILES)
    return Weight(requests, transferred, paint)


def median(visits: list[Weight]) -> Weight:
    def of(name: str) -> float:
        return float(statistics.median(getattr(one, name) for one in visits))

    return Weight(of("requests"), of("transferred_bytes"), of("first_paint_ms"))


def measure(urls: dict[str, str]) -> dict[str, Weight]:
    """Return the weights of pages by their names."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    assert chromium, "needs Chromium"
    assert chromedriver, "needs chromedriver"
    found = {}
    for name, url in urls.items():
        driver = start(chromium, chromedriver)
        try:
            driver.execute_cdp_cmd("Network.enable", {})
            log_in(driver, url)
            found[name] = median([visit(driver) for _ in range(RUNS)])
        finally:
            driver.quit()
    return found


def table(weights: dict[str, Weight]) -> str:
    rows = [
        f"| {name} | {one.requests:.0f} | {one.transferred_bytes / 1000:.0f} kB | {one.first_paint_ms:.0f} ms |"
        for name, one in weights.items()
    ]
    return "\n".join(("| Page | Requests | Transferred | First paint |", "|---|--:|--:|--:|", *rows))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, RunningServer(management=True) as running:
        oracle = ORACLES["4.3"]
        rabbitmq = RabbitMQ(Path(folder) / "rabbitmq", plugins=("rabbitmq_management",), oracle=oracle).start()
        try:
            names = {
                "amqp-broker": f"http://127.0.0.1:{running.server.ports['management']}/",
                f"RabbitMQ {rabbitmq.version}": f"http://127.0.0.1:{rabbitmq.management_port}/",
            }
            print(table(measure(names)))
        finally:
            rabbitmq.stop()


if __name__ == "__main__":
    main()
