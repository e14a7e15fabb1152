from __future__ import annotations

import pika.exceptions
import pytest

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


def test_a_fault_is_added_counts_hits_and_is_removed(browser: Browser, running: RunningServer) -> None:
    browser.start("faults")
    browser.press("Add fault")
    browser.fill("Routing key", "orders.*", "dialog")
    browser.fill("Times", "1", "dialog")
    browser.press("Add fault", "dialog")
    browser.toast("was added")
    assert browser.row("confirm_nack")[:4] == ["1", "confirm_nack", "publish", "/"]
    with channel(running.port) as client:
        client.confirm_delivery()
        with pytest.raises(pika.exceptions.NackError):
            client.basic_publish("", "orders.new", b"")
    browser.until(lambda: browser.row("confirm_nack")[5:7] == ["1", "1 (spent)"])
    browser.press("Remove")
    browser.toast("Fault 1 was removed")
    browser.until(lambda: len(running.server.broker.faults) == 0)


def test_a_refused_fault_is_explained_in_the_dialog(browser: Browser, running: RunningServer) -> None:
    browser.start("faults")
    browser.press("Add fault")
    browser.fill("Probability", "2", "dialog")
    browser.press("Add fault", "dialog")
    browser.find("dialog .problem", "probability must be more than 0 and at most 1")
    assert len(running.server.broker.faults) == 0
