"""Charts show what has been, from the beginning of each object on."""

from __future__ import annotations

import re

from amqp_broker.broker.counting.history import History
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.server.server import Server
from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer

PER_SECOND = 20
# The value of a fact with this name.
FACT = (
    "return [...document.querySelectorAll('.facts > div')]"
    ".find((one) => one.firstChild.textContent === arguments[0])?.lastChild.textContent"
)


def grown_queue(server: Server) -> None:
    """A queue to which 20 messages a second came for an hour, unseen."""
    broker, statistics = server.broker, server.broker.vhosts["/"].queues["busy"].statistics
    now = broker.real_now()
    statistics.history = History()
    for age_s in range(3600, -1, -5):
        statistics.history.keep({"publish": (3600 - age_s) * PER_SECOND}, now - age_s * 1000, now - age_s * 1000 - 5000)
    statistics.published = 3600 * PER_SECOND


def growing_node(server: Server) -> None:
    """20 messages a second come, and have come before."""
    broker, counters = server.broker, server.broker.counters
    start = broker.real_now() - 600_000
    counters.history = History()
    for at_ms in range(start, broker.real_now(), 5000):
        counters.history.keep({"publish": (at_ms - start) * PER_SECOND // 1000}, at_ms, at_ms - 5000)

    def publish(now: int) -> None:
        counters.publishes.publish = (now - start) * PER_SECOND // 1000
        broker.real_timers.at(now + 50, publish)

    publish(broker.real_now())


def choose(browser: Browser, label: str, period: str) -> None:
    select = browser.find(f"select[aria-label='{label}']")
    browser.script(
        "const [select, period] = arguments;"
        "select.value = [...select.options].find((one) => one.text === period).value;"
        "select.dispatchEvent(new Event('change'))",
        select,
        period,
    )


def asked(browser: Browser) -> str:
    script = "return performance.getEntriesByType('resource').map((one) => one.name).join(' ')"
    return str(browser.driver.execute_script(script))


def test_the_first_look_at_a_queue_shows_its_past(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.vhosts["/"].declare_queue(QueueDeclaration("busy", {})))
    running.ask(grown_queue)
    browser.start()
    browser.go("queues/%2F/busy")
    legend = browser.find("figure:nth-of-type(2) .legend")
    browser.until(lambda: re.search(r"Publish\s*[\d.]+", legend.text) is not None)
    choose(browser, "Period shown: Message rates", "Last hour")
    browser.until(lambda: "msg_rates_age=3600" in asked(browser))
    browser.until(lambda: "20/s" in legend.text)


def test_charts_of_a_vhost_and_of_the_node_show_a_day(browser: Browser, running: RunningServer) -> None:
    browser.start()
    browser.go("vhosts/%2F")
    browser.find("figure canvas")
    choose(browser, "Period shown: Queued messages", "Last day")
    browser.until(lambda: "/api/vhosts/%2F?lengths_age=86400&lengths_incr=1800" in asked(browser))
    browser.go("")
    browser.until(lambda: "/api/overview?lengths_age=86400&lengths_incr=1800" in asked(browser))
    choose(browser, "Period shown: Queued messages", "Last minute")


def test_rates_do_not_fall_where_live_updates_begin(browser: Browser, running: RunningServer) -> None:
    running.ask(growing_node)
    browser.start()
    script = "import('/js/live.js').then((module) => arguments[0](module.live.messageRates.rows[0]))"

    def rates() -> list[float]:
        return list(browser.driver.execute_async_script(script))

    loaded = len(rates())
    browser.until(lambda: len(rates()) >= loaded + 4)
    assert min(rates()[-loaded // 2 :]) > 0


def test_statistics_are_reset(browser: Browser, running: RunningServer) -> None:
    browser.start()
    browser.press("Reset statistics")
    browser.press("Reset statistics", "dialog")
    browser.toast("The statistics were reset")


def test_statistics_are_reset_even_if_the_charts_get_no_answer(browser: Browser) -> None:
    browser.start()
    browser.script(
        "const ask = fetch; window.fetch = (path, ...rest) =>"
        "  path.includes('lengths_age') ? Promise.reject(new TypeError()) : ask(path, ...rest)"
    )
    browser.press("Reset statistics")
    browser.press("Reset statistics", "dialog")
    browser.toast("The statistics were reset")


def test_charts_show_messages_that_no_queue_gets(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        for number in range(3):
            client.basic_publish("amq.topic", "nowhere", b"x", mandatory=number == 0)
        browser.start("exchanges/%2F/amq.topic")
        names = "return [...document.querySelectorAll('.legend li')].map((one) => one.childNodes[1].data)"
        assert browser.script(names) == ["Publish in", "Publish out", "Unroutable, returned", "Unroutable, dropped"]
        browser.until(lambda: browser.script(FACT, "Unroutable, dropped") == "2")
        assert browser.script(FACT, "Unroutable, returned") == "1"

        def is_drawn() -> bool:
            client.basic_publish("amq.topic", "nowhere", b"x")
            return not browser.find(".legend li", "Unroutable, dropped").text.endswith("0/s")

        browser.until(is_drawn)
    for route in ("", "vhosts/%2F"):
        browser.visit(route)
        assert any(text.startswith("Unroutable, dropped") for text in browser.texts(".legend li"))
