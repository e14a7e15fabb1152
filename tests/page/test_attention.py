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
            exchange.unroutable = None
            exchange.publishes.drop_unroutable = 0
        finished(vhost.removing_queues())
        server.clock.resume()
        server.clock._offset_ms = server.clock._start_ms

    running.ask(forget)


def test_the_start_page_says_that_nothing_is_wrong(browser: Browser) -> None:
    browser.start()
    browser.shows("Nothing needs attention.")
    assert browser.all(".attention li") == []


def test_the_messages_of_a_queue_without_a_consumer_are_moved_from_its_finding(
    browser: Browser, running: RunningServer
) -> None:
    browser.start()
    with channel(running.port) as client:
        client.queue_declare("orders")
        client.queue_declare("served")
        client.basic_consume("served", lambda *_: None, auto_ack=True)
        for _ in range(1200):
            client.basic_publish("", "orders", b"m")
        browser.shows("Queue 'orders' has no consumer, and has grown by 1,200 to 1,200 messages.")
        assert str(browser.find(".attention a", "Queue").get_attribute("href")).endswith("#/queues/%2F/orders")
        browser.press("Move messages", ".attention")
        browser.fill("To queue", "served", "dialog")
        browser.press("Move messages", "dialog")
        browser.toast("The messages of orders were moved to served")
        browser.shows("Nothing needs attention.")


def test_losses_at_an_exchange_without_bindings_are_shown_and_ended_by_a_binding(
    browser: Browser, running: RunningServer
) -> None:
    browser.start()
    with channel(running.port) as client:
        client.queue_declare("audit")
        client.basic_publish("amq.topic", "order.new", b"m")
        browser.shows("1 message published to exchange 'amq.topic' reached no queue: it has no bindings.")
        assert str(browser.find(".attention a", "Exchange").get_attribute("href")).endswith("/%2F/amq.topic")
        browser.press("Bind queue", ".attention")
        browser.fill("Queue", "audit", "dialog")
        browser.fill("Routing key", "#", "dialog")
        browser.press("Bind queue", "dialog")
        browser.toast("audit was bound")
        browser.shows("reached no queue: it had no bindings then.")


def test_dead_letters_are_linked_where_they_are(browser: Browser, running: RunningServer) -> None:
    browser.start()
    with channel(running.port) as client:
        client.queue_declare("failed")
        client.exchange_declare("dlx", "fanout", auto_delete=True)
        client.queue_bind("failed", "dlx")
        client.queue_declare("work", arguments={"x-dead-letter-exchange": "dlx"})
        client.basic_publish("", "work", b"m")
        method, _, _ = client.basic_get("work")
        client.basic_reject(method.delivery_tag, requeue=False)
        browser.shows("1 message of queue 'work' was dead-lettered (1 rejected) to queue 'failed' by exchange 'dlx' in")
        browser.click(".attention a", "Dead letters")
        browser.until(lambda: browser.route == "queues/%2F/failed")


def test_the_virtual_host_is_named_where_there_are_several(browser: Browser, running: RunningServer) -> None:
    browser.start()
    with channel(running.port) as client:
        client.basic_publish("", "nowhere", b"m")
        browser.shows("reached no queue")
        assert "Virtual host" not in browser.find(".attention").text
        running.ask(lambda server: server.broker.add_vhost("second"))
        browser.shows("Virtual host /. Since")
    running.ask(lambda server: server.broker.delete_vhost("second"))


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
    assert browser.focused == "Move messages"


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
