from __future__ import annotations

from functools import partial

from amqp_broker.broker.admin.access import Permission
from amqp_broker.server.server import Server
from tests.client import Client
from tests.page.browser import Browser
from tests.page.client import channel
from tests.peer import publish_bytes
from tests.running import RunningServer


def test_events_of_a_message_appear_live(browser: Browser, running: RunningServer) -> None:
    browser.start("messages")
    browser.shows("No events yet")
    running.until(lambda server: server.broker.vhosts["/"].trace is not None)
    with channel(running.port) as client:
        client.queue_declare("flow")
        client.basic_publish("", "flow", b'{"a": 1}')
        method, _, _ = client.basic_get("flow")
        client.basic_nack(method.delivery_tag, requeue=True)
        method, _, _ = client.basic_get("flow")
        client.basic_ack(method.delivery_tag)
        client.basic_publish("", "nobody", b"", mandatory=True)
    browser.find(".event.return")
    kinds = [one.split("\n")[1] for one in browser.texts(".flow .event")]
    assert kinds == ["return", "publish", "ack", "deliver", "nack", "deliver", "publish"]
    browser.click(".event.nack")
    browser.press("Show all its events")
    assert len(browser.texts(".trail-list li")) == 5
    browser.click(".event.deliver")
    assert browser.find(".inspector pre.json").text == '{\n  "a": 1\n}'
    browser.click(".switch.publish")
    browser.until(lambda: not browser.all(".event.publish"))
    browser.find("main input[type=search]").send_keys("nothing like it")
    browser.shows("No event matches the filter")


def test_the_columns_have_heads_and_a_pause_is_that_of_the_whole_page(browser: Browser, running: RunningServer) -> None:
    browser.start("messages")
    assert browser.texts(".heads span") == [
        *("Time", "Event", "Message", "Exchange or queue", "Routing key", "Payload or reason", "Size")
    ]
    running.until(lambda server: server.broker.vhosts["/"].trace is not None)
    browser.press("Pause")
    browser.until(lambda: browser.find(".live").text == "Paused")
    with channel(running.port) as client:
        client.basic_publish("amq.fanout", "unseen", b"x")
        browser.shows("0 events · paused", ".title")
        browser.click(".live")
        browser.until(lambda: browser.find(".live").text == "Live")
        browser.press("Pause")
        browser.press("Resume")
        client.basic_publish("amq.fanout", "seen", b"x")
        browser.find(".event", "seen")
    assert "unseen" not in browser.find(".flow").text
    assert browser.script("return document.querySelector('.event.heads .size').offsetLeft") == browser.script(
        "return document.querySelector('.flow .event .size').offsetLeft"
    )


def test_a_page_opened_in_a_pause_says_that_it_is_paused(browser: Browser, running: RunningServer) -> None:
    browser.start("queues")
    browser.click(".live")
    browser.until(lambda: browser.find(".live").text == "Paused")
    browser.visit("messages")
    running.until(lambda server: server.broker.vhosts["/"].trace is not None)
    browser.shows("0 events · paused", ".title")
    browser.press("Resume")


def test_terms_explain_the_columns_of_live_messages(browser: Browser, running: RunningServer) -> None:
    browser.start("messages")
    browser.press("Terms", "main")
    browser.shows("All events of a message have its number.", "dialog")
    browser.shows("The bytes in the payload of a message", "dialog")


def test_leaving_the_page_ends_the_trace(browser: Browser, running: RunningServer) -> None:
    browser.start("messages")
    running.until(lambda server: server.broker.vhosts["/"].trace is not None)
    browser.go("queues")
    running.until(lambda server: server.broker.vhosts["/"].trace is None)


def test_skipped_events_of_a_flood_are_counted(browser: Browser, running: RunningServer) -> None:
    browser.start("messages")
    browser.shows("Listening")
    with Client(running.port).open() as client:
        # In one write: a slow publisher would leave the page the time to show every event.
        flood = publish_bytes("flood", b"x", exchange="amq.fanout") * 5000
        client.send_bytes(flood + publish_bytes("last", b"x", exchange="amq.fanout"))
        client.sync()
    browser.find(".event", "last")
    browser.shows("skipped", ".title")
    assert len(browser.all(".flow .event")) <= 150


def add_vhost(server: Server, name: str) -> None:
    server.broker.add_vhost(name)
    server.broker.users.set_permission(server.broker.users.named("guest"), name, Permission(".*", ".*", ".*"))


def delete_vhost(server: Server, name: str) -> None:
    server.broker.delete_vhost(name)


def test_messages_of_all_virtual_hosts_are_shown_or_of_the_selected_one(
    browser: Browser, running: RunningServer
) -> None:
    running.ask(lambda server: add_vhost(server, "shop"))
    browser.start("messages")
    browser.shows("all virtual hosts", ".title")
    running.until(lambda server: all(vhost.trace is not None for vhost in server.broker.vhosts.values()))
    # A virtual host that is created later is shown, too.
    running.ask(lambda server: add_vhost(server, "late"))
    for vhost in ("/", "shop", "late"):
        with channel(running.port, vhost=vhost) as client:
            client.basic_publish("amq.fanout", "key", b"x")
    browser.until(lambda: len(browser.all(".flow .event")) == 3)
    assert browser.texts(".flow .event .of") == ["late", "shop", "/"]
    browser.click(".flow .event")
    browser.shows("late", ".inspector")
    assert str(browser.find(".inspector a").get_attribute("href")).endswith("#/exchanges/late/amq.fanout")
    browser.script(
        "const one = document.getElementById('vhost'); one.value = 'shop'; one.dispatchEvent(new Event('change'))"
    )
    browser.shows("shop", ".title")
    running.until(
        lambda server: [name for name, one in server.broker.vhosts.items() if one.trace is not None] == ["shop"]
    )
    for name in ("shop", "late"):
        running.ask(partial(delete_vhost, name=name))
