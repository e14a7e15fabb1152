from __future__ import annotations

import pika.exceptions
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from amqp_broker.broker.lab.fault_rules import ACTIONS
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


def test_the_filter_finds_faults_by_their_action_and_fields(browser: Browser, running: RunningServer) -> None:
    running.faults.add("confirm_nack", routing_key="orders.*")
    running.faults.add("return", routing_key="bills")
    browser.start("faults")
    browser.find("input[type=search]").send_keys("NACK")
    browser.until(lambda: [one.text for one in browser.all("tbody td:nth-child(2)")] == ["confirm_nack"])
    browser.find("input[type=search]").send_keys(Keys.CONTROL, "a", Keys.NULL, "bills")
    browser.until(lambda: [one.text for one in browser.all("tbody td:nth-child(2)")] == ["return"])
    running.faults.clear()


def test_a_refused_fault_is_explained_in_the_dialog(browser: Browser, running: RunningServer) -> None:
    browser.start("faults")
    browser.press("Add fault")
    browser.fill("Probability", "2", "dialog")
    browser.press("Add fault", "dialog")
    browser.find("dialog .problem", "probability must be more than 0 and at most 1")
    assert len(running.server.broker.faults) == 0


def shown(browser: Browser) -> set[str]:
    return {label.removesuffix(" *") for label in browser.texts("dialog label.label")}


def test_the_form_shows_the_fields_of_the_chosen_action(browser: Browser, running: RunningServer) -> None:
    message = {"Virtual host", "Exchange", "Routing key", "Queue", "User", "Connection"}
    limits = {"Times", "After", "Probability", "Seed"}
    browser.start("faults")
    browser.press("Add fault")
    browser.until(lambda: shown(browser) == {"Action", "When"} | message | limits)
    browser.fill("Exchange", "left behind", "dialog")
    browser.fill("Action", "Slow the connection by a delay (latency)", "dialog")
    connection = {"Virtual host", "User", "Connection"}
    assert shown(browser) == {"Action", "When", "Delay (ms)", "Jitter (ms)", "Direction", "Seed"} | connection
    browser.fill("When", "open", "dialog")
    assert shown(browser) == {"Action", "When", "Delay (ms)", "Jitter (ms)", "Direction"} | connection | limits
    # A parameter that the action needs is demanded, and a field that is hidden is not sent.
    browser.press("Add fault", "dialog")
    assert browser.script("return document.activeElement === arguments[0]", browser.field("Delay (ms)", "dialog"))
    browser.fill("Delay (ms)", "5", "dialog")
    browser.press("Add fault", "dialog")
    browser.toast("was added")
    [rule] = running.ask(lambda server: list(server.broker.faults))
    assert (rule.action, rule.on, rule.delay_ms, rule.exchange) == ("latency", "open", 5, None)
    running.ask(lambda server: server.broker.faults.clear())


def test_a_method_is_refused_by_a_fault_that_the_page_adds(browser: Browser, running: RunningServer) -> None:
    browser.start("faults")
    browser.press("Add fault")
    browser.fill("Action", "Close the channel (close_channel)", "dialog")
    browser.fill("When", "method", "dialog")
    browser.fill("Method", "queue.declare", "dialog")
    browser.fill("Queue", "orders", "dialog")
    browser.press("Add fault", "dialog")
    browser.toast("was added")
    with channel(running.port) as client:
        client.queue_declare("other")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="406, 'PRECONDITION_FAILED - closed by a"):
            client.queue_declare("orders")
    browser.until(lambda: browser.row("close_channel")[5] == "1")
    running.ask(lambda server: server.broker.faults.clear())


def test_held_messages_are_delivered_one_by_one(browser: Browser, running: RunningServer) -> None:
    running.faults.add("hold_delivery", queue="orders")
    browser.start("faults")
    with channel(running.port) as client:
        client.queue_declare("orders")
        got: list[bytes] = []
        client.basic_consume("orders", lambda channel, method, properties, body: got.append(body), auto_ack=True)
        for body in (b"1", b"2"):
            client.basic_publish("", "orders", body)
        client.connection.process_data_events(0)
        for expected in ([b"1"], [b"1", b"2"]):
            browser.press("Deliver one")
            client.connection.process_data_events(5)
            assert got == expected
    browser.until(lambda: not browser.all("tbody button:nth-child(2)"))
    running.faults.clear()


def test_every_action_of_the_broker_is_offered(browser: Browser) -> None:
    browser.start("faults")
    browser.press("Add fault")
    offered = "return [...document.querySelectorAll('dialog select[name=action] option')].map((one) => one.value)"
    assert browser.script(offered) == list(ACTIONS)


def test_each_action_can_be_added_with_the_fields_shown(browser: Browser, running: RunningServer) -> None:
    browser.start("faults")
    for action in ACTIONS:
        browser.press("Add fault")
        option = browser.find("dialog select[name=action]").find_element(By.CSS_SELECTOR, f"option[value={action}]")
        label = str(option.get_attribute("text"))
        browser.fill("Action", label, "dialog")
        for field in ("Delay (ms)", "Jitter (ms)", "Duration (ms)", "Octets per second", "Times"):
            if field in shown(browser):
                browser.fill(field, "1", "dialog")
        browser.press("Add fault", "dialog")
        browser.until(lambda: not browser.all("dialog"))
    assert running.ask(lambda server: [rule.action for rule in server.broker.faults]) == list(ACTIONS)
    running.ask(lambda server: server.broker.faults.clear())
