"""The report of a run in a browser, from its file (amqp_broker/run_report)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from pamqp import commands
from pamqp.common import FieldTable
from selenium import webdriver

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.run_report.page import Failure, failure_section, write
from tests.broker_parts import bind, new_exchange, new_queue
from tests.page import axe
from tests.page.browser import Browser
from tests.page.hostile import ANY_CONTEXT, ATTACKS, WATCH, findings
from tests.run_report.reporting import logging_lab, report_of


@pytest.fixture
def browser(driver: webdriver.Chrome) -> Browser:
    browser = Browser(driver, 0)
    browser.complaints()
    return browser


def written(folder: Path, name: str, assertion: str) -> Path:
    """Write the report of a broker with messages of all kinds, whose names are those of attacks."""
    lab = logging_lab()
    peer = lab.connect()
    shop = new_exchange(lab.vhost, "shop", "topic")
    new_queue(lab.vhost, "dead")
    letters: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    orders = new_queue(lab.vhost, "orders", arguments=letters)
    bind(shop, orders, lab.vhost, "key.1")
    for number, attack in enumerate(ATTACKS):
        bind(shop, new_queue(lab.vhost, attack), lab.vhost, f"key.{number}")
    peer.call(commands.Confirm.Select())
    lab.broker.faults.add(Rule("confirm_nack", routing_key="key.2"))
    for number, attack in enumerate(ATTACKS):
        peer.publish(f"key.{number}", attack.encode(), exchange="shop", message_id=attack)
    for _ in range(3):
        peer.publish("key.1", b"body", exchange="shop")
    peer.publish("none", ANY_CONTEXT.encode(), exchange="shop", mandatory=True)
    peer.send(commands.Basic.Consume(queue="orders", consumer_tag=ANY_CONTEXT))
    peer.send(commands.Basic.Ack(1), commands.Basic.Reject(2, requeue=False), commands.Basic.Cancel(ANY_CONTEXT))
    peer.send(commands.Basic.Nack(3, requeue=True))
    path = folder / "report.html"
    section = failure_section(Failure(name, assertion, [(name, assertion)], [report_of(lab, moved_ms=1000)]))
    write(path, name, [(name, section), ("other", failure_section(Failure("other", "", [], [])))])
    return path


def test_no_name_and_no_body_runs_a_script(browser: Browser, tmp_path: Path) -> None:
    watch = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    try:
        browser.driver.get(written(tmp_path, ANY_CONTEXT, ANY_CONTEXT).as_uri())
        assert findings(browser) == []
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", watch)
    assert browser.complaints() == []


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_the_page_is_accessible_and_as_wide_as_the_window(
    browser: Browser, tmp_path: Path, theme: str, width: int
) -> None:
    if shutil.which("npm") is None:
        # CI must not skip these tests.
        assert not os.environ.get("CI"), "npm is not installed"
        pytest.skip("needs npm")
    colours = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", colours)
    try:
        with browser.wide(width):
            browser.driver.get(written(tmp_path, "test_it.py::test_it", "assert 1 == 2").as_uri())
            assert axe.violations(browser, axe.source()) == []
            assert browser.script("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
