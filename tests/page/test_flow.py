from __future__ import annotations

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
