"""Makes the pictures of docs/images from a broker with some traffic: `python -m docs.screenshots`. Needs Chromium."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

import pika
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.run_report.page import Failure, failure_section, write
from tests.broker_parts import bind, new_exchange, new_queue
from tests.page.browser import Browser, start
from tests.page.client import channel
from tests.run_report.reporting import logging_lab, report_of
from tests.running import RunningServer

IMAGES: Final = Path(__file__).with_name("images")
SIZE: Final = {"width": 1100, "height": 680, "deviceScaleFactor": 1, "mobile": False}
REPORT_SIZE: Final = {"width": 1240, "height": 960}
# A telephone, a laptop and a large screen.
SCREENS: Final = ((390, 844), (1280, 800), (1920, 1080))
THEMES: Final = ("light", "dark")
# Time for the charts to have lines.
TRAFFIC_S: Final = 25
# Largest picture.
BYTES_MAX: Final = 200_000


def work(port: int, is_over: threading.Event) -> None:
    """Publish orders and consume some, until the event is set."""
    with channel(port, "shop") as shop:
        shop.exchange_declare("orders", "topic", durable=True)
        for name, key in (("orders.new", "order.#"), ("orders.paid", "order.paid"), ("audit", "#")):
            shop.queue_declare(name, durable=True)
            shop.queue_bind(name, "orders", key)
        shop.queue_declare("history", durable=True, arguments={"x-queue-type": "stream"})
        shop.queue_bind("history", "orders", "#")
        number = 0
        while not is_over.is_set():
            number += 1
            kind = "paid" if number % 3 == 0 else "created"
            body = f'{{"order": {1000 + number}, "total": "{number % 90}.50", "items": ["tea", "cup"]}}'
            properties = pika.BasicProperties(content_type="application/json", delivery_mode=2, message_id=str(number))
            shop.basic_publish("orders", f"order.{kind}", body.encode(), properties)
            if number % 4:
                shop.basic_get("orders.new", auto_ack=True)
            time.sleep(0.02 + 0.01 * (number // 100 % 3))


def make(browser: Browser) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", SIZE)
    browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    browser.start()
    time.sleep(TRAFFIC_S)
    take(browser, "overview")
    browser.go("queues/%2F/orders.paid")
    browser.click(".messages summary", '"order"')
    browser.find("pre.json")
    browser.script("document.querySelector('.messages').scrollIntoView(); scrollBy(0, -150)")
    take(browser, "queue")
    browser.go("topology")
    browser.find(".map .lit")
    take(browser, "topology")
    browser.go("messages")
    browser.find(".event.publish")
    time.sleep(2)
    take(browser, "flow")
    browser.go("")
    take_screens(browser)


def take_screens(browser: Browser) -> None:
    """Take the overview on each screen in both themes (docs/screens.md)."""
    for theme in THEMES:
        browser.script("localStorage.setItem('theme', arguments[0])", theme)
        for width, height in SCREENS:
            size = {**SIZE, "width": width, "height": height}
            browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.driver.refresh()
            browser.find(".chart canvas")
            # The charts know the last minutes after a moment.
            time.sleep(2)
            take(browser, f"overview-{width}-{theme}")
    browser.script("localStorage.removeItem('theme')")


def take_report(browser: Browser, folder: Path) -> None:
    """Take the page about a failed test (docs/test-report.md)."""
    lab = logging_lab()
    peer = lab.connect()
    dead: FieldTable = {"x-dead-letter-exchange": "dead"}
    shop, letters = new_exchange(lab.vhost, "shop", "topic"), new_exchange(lab.vhost, "dead")
    bind(shop, new_queue(lab.vhost, "orders", arguments=dead), lab.vhost, "order.paid")
    bind(letters, new_queue(lab.vhost, "failed"), lab.vhost)
    peer.call(commands.Confirm.Select())
    for key in ("order.payed", "order.paid"):
        peer.publish(key, b'{"order": 1}', exchange="shop", content_type="application/json")
    for tag in (1, 2):
        peer.send(commands.Basic.Get(queue="orders"), commands.Basic.Nack(tag, requeue=tag == 1))
    assertion = "AssertionError: the order is missing\nassert 0 == 1\ntest_orders.py:11"
    failure = Failure("test_orders.py::test_an_order_is_queued", assertion, [], [report_of(lab)])
    path = folder / "report.html"
    write(path, "1 failed test", [(failure.name, failure_section(failure))])
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**SIZE, **REPORT_SIZE})
    browser.driver.get(path.as_uri())
    take(browser, "test-report")


def take(browser: Browser, name: str) -> None:
    path = IMAGES / f"{name}.png"
    browser.driver.save_screenshot(str(path))
    assert path.stat().st_size < BYTES_MAX, f"{path} is too large"


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        raise SystemExit("Chromium and chromedriver are needed")
    driver = start(chromium, chromedriver)
    with RunningServer(management=True) as running:
        is_over = threading.Event()
        shop = threading.Thread(target=work, args=(running.port, is_over))
        shop.start()
        try:
            browser = Browser(driver, running.server.ports["management"])
            make(browser)
            with tempfile.TemporaryDirectory() as folder:
                take_report(browser, Path(folder))
        finally:
            is_over.set()
            shop.join()
            driver.quit()


if __name__ == "__main__":
    main()
