"""The map of a virtual host lights up where messages flow."""

from __future__ import annotations

from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer

# The class of the way with this title.
WAY = (
    "return [...document.querySelectorAll('.map path')]"
    ".find((one) => one.textContent.startsWith(arguments[0]))?.getAttribute('class')"
)


def test_ways_light_up_as_messages_flow(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.exchange_declare("shop", "topic")
        for name in ("orders", "mail"):
            client.queue_declare(name, durable=True)
        client.queue_bind("orders", "shop", "order.*")
        client.queue_bind("mail", "shop", "customer.*")
        browser.start("topology")
        browser.find(".map .exchange", "shop")
        drawn = browser.find(".map .queue", "orders")

        def is_lit() -> bool:
            client.basic_publish("shop", "order.new", b"x")
            return "lit" in browser.script(WAY, "shop to orders: order.*")

        browser.until(is_lit)
        assert "lit" not in browser.script(WAY, "shop to mail: customer.*")
        browser.until(lambda: not browser.find(".map .queue", "orders").text.endswith("\n0 ready"))
        # The element is the same.
        assert drawn.is_displayed()
        drawn.send_keys("\n")
        browser.until(lambda: browser.route == "queues/%2F/orders")


def test_many_queues_are_folded_and_filtered_by_name(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.exchange_declare("tenants", "topic")
        for number in range(61):
            client.queue_declare(f"tenant.{number:02}", durable=True)
            client.queue_bind(f"tenant.{number:02}", "tenants", f"t.{number:02}")
        client.queue_declare("spare", durable=True)
        client.basic_publish("tenants", "t.60", b"x")
        browser.start("topology")
        browser.shows("60 queues are drawn: busy ones first")
        assert len(browser.all(".map .queue")) == 60
        assert browser.find(".map .queue", "tenant.60")
        folded = sum(int(one.text.split()[0]) for one in browser.all(".map .fold"))
        assert folded == running.ask(lambda server: len(server.broker.vhosts["/"].queues)) - 60
        browser.script(
            "[...document.querySelectorAll('.map .fold[role=button]')]"
            ".find((one) => one.textContent.includes('of tenants')).dispatchEvent(new MouseEvent('click'))"
        )
        browser.until(lambda: browser.find("input[type=search]").get_attribute("value") == "tenants")
        browser.shows("61 of")
        browser.script("arguments[0].value = ''", browser.find("input[type=search]"))
        browser.type("tenant.60")
        browser.until(lambda: [one.text.split("\n")[0] for one in browser.all(".map .queue")] == ["tenant.60"])
        assert not browser.all(".map .fold")
        browser.shows("1 of 6")
        browser.type("x")
        browser.shows("No queue or exchange matches.")
