"""The map of a virtual host lights up where messages flow."""

from __future__ import annotations

import contextlib

from pika.exceptions import NackError

from amqp_broker.server.server import Server
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


def test_busy_queues_come_first_then_full_then_bound_ones(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.exchange_declare("ranked", "topic")
        for number in range(20):
            client.queue_declare(f"ranked.{number:02}", durable=True)
        client.queue_bind("ranked.12", "ranked", "bound")
        client.basic_publish("", "ranked.17", b"x")
        client.basic_publish("", "ranked.05", b"x")

        def age(server: Server) -> None:
            queue = server.broker.vhosts["/"].queues["ranked.05"]
            queue.statistics.published = 0

        browser.start("topology")
        browser.find(".map .queue", "ranked.17")
        running.ask(age)
        browser.type("/", "ranked.")

        def drawn() -> list[str]:
            rows = browser.script(
                "return [...document.querySelectorAll('.map .queue')]"
                ".map((one) => [one.querySelector('rect').y.baseVal.value, one.querySelector('text').textContent])"
            )
            return [name for _, name in sorted(rows)]

        browser.until(lambda: drawn()[:4] == ["ranked.17", "ranked.05", "ranked.12", "ranked.00"])
        for number in range(20):
            client.queue_delete(f"ranked.{number:02}")


def test_long_names_on_the_map_take_two_lines(browser: Browser, running: RunningServer) -> None:
    name = "company.eu-central-1.orders.customer-07.notifications"
    with channel(running.port) as client:
        client.queue_declare(name, durable=True)
        browser.start("topology")
        browser.type("/", name)
        browser.until(lambda: len(browser.all(".map .queue")) == 1)
        lines = "return [...document.querySelectorAll('.map .queue tspan')].map((one) => one.textContent)"
        assert browser.script(lines) == ["company.eu-central-1.orders.", "customer-07.notifications"]
        client.queue_delete(name)


def test_a_narrow_screen_has_the_ways_as_a_table(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client, browser.wide(390):
        client.exchange_declare("narrow", "topic")
        client.queue_declare("narrow.orders", durable=True)
        client.queue_bind("narrow.orders", "narrow", "order.#")
        browser.start("topology")
        browser.shows("This screen is too narrow for the map")
        browser.type("/", "narrow.orders")
        assert browser.row("order.#")
        assert browser.all(".map") == []
        client.queue_delete("narrow.orders")


def marks(browser: Browser) -> list[str]:
    """Return the faults that are written on ways."""
    return [one for one in browser.texts(".map .fault-note") if one]


def test_a_fault_is_added_to_a_way_shown_on_it_and_ended(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.exchange_declare("bank", "topic")
        for name in ("pay*ments", "ledger"):
            client.queue_declare(name, durable=True)
            client.queue_bind(name, "bank", "pay")
        client.queue_bind("ledger", "bank", "book")
        client.confirm_delivery()
        browser.start("topology")
        browser.type("/", "bank")
        browser.until(lambda: len(browser.all(".map .queue")) == 2)
        row = browser.find("table[aria-label='Ways'] tr", "pay*ments")
        browser.script("arguments[0].click()", row.find_element("css selector", "td:last-child button"))
        browser.fill("Fault", "Nack about every tenth", "dialog")
        browser.press("Add fault", "dialog")
        browser.toast("was added")
        [rule] = running.ask(lambda server: [one.as_dict() for one in server.broker.faults])
        assert (rule["action"], rule["exchange"], rule["queue"], rule["vhost"]) == (
            "confirm_nack",
            "bank",
            "pay\\*ments",
            "/",
        )
        browser.until(lambda: marks(browser) == ["nacked 0"])

        def is_hit() -> bool:
            with contextlib.suppress(NackError):
                client.basic_publish("bank", "pay", b"x")
            return marks(browser) not in ([], ["nacked 0"])

        browser.until(is_hit)
        assert "faulty" in browser.script(WAY, "bank to pay*ments: pay")
        assert "faulty" not in browser.script(WAY, "bank to ledger")
        browser.click("table[aria-label='Ways'] button", "End")
        browser.toast("was removed")
        browser.until(lambda: marks(browser) == [])
        assert running.ask(lambda server: len(server.broker.faults)) == 0


def test_a_press_on_a_line_asks_for_the_faults_of_what_it_carries(browser: Browser, running: RunningServer) -> None:
    with channel(running.port, "worker") as client:
        client.queue_declare("served", exclusive=True)
        client.basic_consume("served", lambda *_: None)
        browser.start("topology")
        browser.type("/", "served")
        browser.until(lambda: len(browser.all(".map .queue")) == 1)
        browser.script(
            "[...document.querySelectorAll('.map .target')]"
            ".find((one) => one.textContent.startsWith('Delivered from served')).dispatchEvent(new MouseEvent('click'))"
        )
        browser.fill("Fault", "Deliver the next one twice", "dialog")
        browser.press("Add fault", "dialog")
        browser.until(lambda: marks(browser) == ["twice 0"])
        client.basic_publish("", "served", b"x")
        # A rule that is spent is no longer on the way.
        browser.until(lambda: marks(browser) == [])
        running.ask(lambda server: server.broker.faults.clear())


def test_a_viewer_is_offered_no_faults(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.users.add("viewer", "secret", tags=("monitoring",)))
    browser.open(route="topology")
    browser.log_in("viewer", "secret")
    browser.find(".map-page")
    assert browser.all(".map .target") == []
    assert "Faults" not in browser.texts("table[aria-label='Ways'] th")
