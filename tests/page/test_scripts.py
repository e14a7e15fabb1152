"""Names and payloads from clients are shown as text, and never run."""

from __future__ import annotations

from urllib.parse import quote

import pika
import pytest

from amqp_broker.server.server import Server
from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer

HOSTILE = (
    "<img src=x onerror=window.hit=1>",
    "</script><script>window.hit=1</script>",
    "javascript:window.hit=1",
    "\"'><svg onload=window.hit=1>",
    "{{constructor.constructor('window.hit=1')()}}",
)


@pytest.fixture(autouse=True)
def hostile(running: RunningServer) -> None:
    with channel(running.port, HOSTILE[0]) as client:
        for text in HOSTILE:
            client.exchange_declare(text, "topic")
            client.queue_declare(text, arguments={"x-" + text: text})
            client.queue_bind(text, text, text, arguments={text: text})
            properties = pika.BasicProperties(content_type=text, message_id=text, headers={text: text})
            client.basic_publish(text, text, text.encode(), properties)
            client.basic_publish("", text, f'{{"{text[:1]}": 1}}'.encode(), properties)


def is_unhurt(browser: Browser) -> bool:
    assert browser.script("return window.hit") is None
    assert browser.script("return document.querySelectorAll('main img, main script, main svg[onload]').length") == 0
    return True


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_queue_is_shown_as_text(browser: Browser, text: str) -> None:
    browser.start("queues")
    browser.find("tbody a", text)
    assert is_unhurt(browser)
    browser.go("queues/%2F/" + quote(text, safe=""))
    assert browser.find("h1", text).text == text
    browser.click(".messages summary", text)
    browser.find(".message")
    browser.find(".diagram .node.exchange", text[:20])
    assert is_unhurt(browser)
    browser.go("exchanges/%2F/" + quote(text, safe=""))
    browser.find(".diagram .node.queue", text[:20])
    assert is_unhurt(browser)


def test_a_hostile_live_message_is_shown_as_text(browser: Browser, running: RunningServer) -> None:
    browser.start("messages")
    running.until(lambda server: server.broker.vhosts["/"].trace is not None)
    with channel(running.port, HOSTILE[0]) as client:
        for text in HOSTILE:
            client.basic_publish(text, text, text.encode(), pika.BasicProperties(headers={text: text}))
    for text in HOSTILE:
        browser.click(".event.publish", text)
        browser.shows(text, ".inspector")
        assert is_unhurt(browser)


def test_hostile_names_of_users_vhosts_and_policies_are_shown_as_text(browser: Browser, running: RunningServer) -> None:
    def add(server: Server) -> None:
        for text in HOSTILE:
            server.broker.users.add(text, text)
            server.broker.add_vhost(text)

    running.ask(add)
    browser.start("users")
    for text in HOSTILE:
        browser.find("tbody a", text)
    browser.go("vhosts")
    for text in HOSTILE:
        browser.find("tbody a", text)
    browser.go("vhosts/" + quote(HOSTILE[1], safe=""))
    browser.find("h1", HOSTILE[1])
    assert is_unhurt(browser)


def test_an_address_with_a_script_does_not_exist(browser: Browser) -> None:
    browser.start()
    browser.script("location.hash = arguments[0]", "#/queues/%2F/<img src=y onerror=window.hit=1>")
    browser.shows("does not exist")
    browser.script("location.hash = '#/%E0%A4%A'")
    browser.shows("This page does not exist")
    assert is_unhurt(browser)


def test_the_content_security_policy_blocks_inline_scripts(browser: Browser) -> None:
    """The policy protects users if the page ever inserts markup."""
    browser.start()
    browser.script(
        "const one = document.createElement('img'); one.setAttribute('onerror', 'window.hit=1'); one.src = '/x';"
        "document.body.append(one);"
    )
    browser.until(lambda: any("Content Security Policy" in one for one in browser.complaints()))
    assert browser.script("return window.hit") is None
