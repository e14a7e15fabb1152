from __future__ import annotations

import pytest

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.server.server import Server
from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


@pytest.fixture(autouse=True)
def nothing_is_wrong(running: RunningServer) -> None:
    """Other tests may have left something that still needs attention."""

    def forget(server: Server) -> None:
        incidents, vhost = server.broker.incidents, server.broker.vhosts["/"]
        incidents.lost.clear()
        incidents.refused.clear()
        server.broker.faults.clear(None)
        for exchange in vhost.exchanges.values():
            exchange.unroutable_key = None
        finished(vhost.removing_queues())
        server.clock.resume()
        server.clock._offset_ms = server.clock._start_ms

    running.ask(forget)


def test_the_start_page_says_that_nothing_is_wrong(browser: Browser) -> None:
    browser.start()
    browser.shows("Nothing needs attention.")
    assert browser.all(".attention li") == []


def test_a_queue_without_a_consumer_is_purged_from_its_finding(browser: Browser, running: RunningServer) -> None:
    browser.start()
    with channel(running.port) as client:
        client.queue_declare("orders")
        for _ in range(12):
            client.basic_publish("", "orders", b"m")
        browser.shows("Queue 'orders' has no consumer, and has grown by 12 to 12 messages.")
        assert str(browser.find(".attention a", "Queue").get_attribute("href")).endswith("#/queues/%2F/orders")
        browser.press("Purge", ".attention")
        browser.find("dialog", "Its 12 ready messages are deleted.")
        browser.press("Purge", "dialog")
        browser.toast("orders was purged")
        browser.shows("Nothing needs attention.")


def test_the_focus_stays_on_a_button_while_its_sentence_changes(browser: Browser, running: RunningServer) -> None:
    browser.start()
    with channel(running.port) as client:
        client.queue_declare("orders")
        for _ in range(12):
            client.basic_publish("", "orders", b"m")
        browser.shows("to 12 messages.")
        browser.script("document.querySelector('.attention button').focus()")
        client.basic_publish("", "orders", b"m")
        browser.shows("to 13 messages.")
    assert browser.focused == "Purge"


def test_an_unroutable_key_has_the_closest_binding_and_a_button_that_binds_it(
    browser: Browser, running: RunningServer
) -> None:
    browser.start()
    with channel(running.port) as client:
        client.queue_declare("orders")
        client.queue_bind("orders", "amq.direct", "order.paid")
        client.basic_publish("amq.direct", "order.payed", b"m")
        browser.shows("did you mean 'order.paid'?")
        browser.press("Bind queue", ".attention")
        browser.fill("Queue", "orders", "dialog")
        browser.press("Bind queue", "dialog")
        browser.toast("orders was bound")
    keys = running.ask(
        lambda server: {one.routing_key for one in server.broker.vhosts["/"].exchanges["amq.direct"].bindings.values()}
    )
    assert keys == {"order.paid", "order.payed"}


def test_a_fault_rule_that_is_on_is_removed_from_its_finding(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.faults.add(Rule("confirm_nack", queue="orders")))
    browser.start()
    browser.shows("Fault rule 1 is on: confirm_nack on publish (queue 'orders').")
    browser.press("Remove rule", ".attention")
    browser.shows("Nothing needs attention.")
    assert running.ask(lambda server: len(server.broker.faults)) == 0


def test_a_frozen_clock_runs_again_by_the_button_of_its_finding(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.node.freeze())
    browser.start()
    browser.shows("The broker's clock is frozen.")
    browser.press("Let it run", ".attention")
    browser.toast("The clock runs again")
    assert not running.ask(lambda server: server.node.is_frozen())


def test_an_alarm_is_on_every_page_in_the_navigation_and_in_the_title(browser: Browser, running: RunningServer) -> None:
    browser.start("queues")
    running.ask(lambda server: server.node.set_alarm("memory", True))
    browser.find(".alarms", "Memory alarm: it was set by a command. Publishers wait until it ends")
    browser.until(lambda: browser.driver.title.startswith("Alarm \N{EN DASH} Queues"))
    browser.find("nav a.alarmed", "Overview")
    browser.go("")
    browser.find(".attention li.critical", "Memory alarm")
    browser.press("Clear alarm", ".attention")
    browser.until(lambda: not browser.all(".alarms p"))
    browser.until(lambda: browser.driver.title.startswith("Overview"))
    assert browser.all("nav a.alarmed") == []


def test_only_what_concerns_the_chosen_virtual_host_is_listed(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.add_vhost("quiet"))
    with channel(running.port) as client:
        client.basic_publish("", "nowhere", b"m")
        browser.start()
        browser.shows("reached no queue")
        browser.script(
            "const one = document.getElementById('vhost'); one.value = 'quiet'; one.dispatchEvent(new Event('change'))"
        )
        browser.shows("Nothing needs attention.")
    running.ask(lambda server: server.broker.delete_vhost("quiet"))
