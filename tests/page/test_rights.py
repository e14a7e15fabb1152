"""The page offers what the user may do, and says what the user may not see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqp_broker.broker.admin.access import Permission
from amqp_broker.server.server import Server
from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer

ALL = Permission(".*", ".*", ".*")


@pytest.fixture
def client(running: RunningServer) -> Iterator[None]:
    def add_users(server: Server) -> None:
        users = server.broker.users
        for name, tag, permission in (
            ("viewer", "monitoring", None),
            ("stranger", "management", None),
            ("reader", "management", Permission("^none", "^none", "^orders")),
            ("writer", "management", ALL),
        ):
            user = users.add(name, "secret", tags=(tag,))
            if permission is not None:
                users.set_permission(user, "/", permission)

    running.ask(add_users)
    with channel(running.port, "client") as client:
        client.queue_declare("orders", durable=True)
        client.exchange_declare("shop", "topic")
        client.queue_bind("orders", "shop", "order.#")
        for _ in range(12):
            client.basic_publish("", "orders", b"m")
        client.basic_publish("shop", "unknown", b"m")
        yield
        client.queue_delete("orders")
        client.exchange_delete("shop")


def log_in(browser: Browser, name: str, route: str) -> None:
    browser.open(route=route)
    browser.log_in(name, "secret")
    browser.find("main h1, main .empty")
    browser.find("main:not([aria-busy])")


def buttons(browser: Browser) -> set[str]:
    """Return the labels of the buttons of a page, without those that every page has."""
    labels = browser.script(
        "return [...document.querySelectorAll('main button')].filter((one) => one.checkVisibility())"
    )
    return {one.text for one in labels} - {"Terms", "View", "Refresh", ""}


@pytest.mark.parametrize("route", ["queues/%2F/orders", "exchanges/%2F/shop"])
def test_an_object_that_the_user_may_not_see_is_its_name_and_a_sentence(
    browser: Browser, client: None, route: str
) -> None:
    log_in(browser, "stranger", route)
    kind, name = ("queue", "orders") if "queues" in route else ("exchange", "shop")
    browser.shows(f"You may not see {kind} \N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK}: ")
    assert browser.texts("main h1") == [name]
    assert browser.all("main button") == browser.all("main h2") == []


def test_a_group_of_the_navigation_without_pages_has_no_head(browser: Browser, client: None) -> None:
    log_in(browser, "stranger", "")
    assert browser.texts("nav h2") == ["Admin"]
    browser.type("?")
    assert "Faults" not in browser.find("dialog").text


def test_a_viewer_without_permissions_is_offered_nothing_to_change(browser: Browser, client: None) -> None:
    log_in(browser, "viewer", "")
    browser.shows("Queue 'orders' has no consumer")
    browser.shows("reached no queue")
    assert browser.all(".attention button") == []
    routes = ("queues", "exchanges", "queues/%2F/orders", "exchanges/%2F/shop", "vhosts/%2F")
    for route in (*routes, "policies", "limits", "shovels"):
        browser.visit(route)
        sorts = {one.text for one in browser.all("th button")}
        assert {one for one in buttons(browser) - sorts if one[:1].isupper()} == set(), route
        assert browser.all("main summary") == [], route
    browser.visit("queues/%2F/orders")
    browser.shows("Your user has no permission to read the messages of orders, or to publish to it.")
    browser.visit("connections")
    browser.click("tbody a")
    browser.shows("Client properties")
    assert "Force close" not in buttons(browser)


def test_a_reader_may_read_and_purge_and_not_publish(browser: Browser, client: None) -> None:
    log_in(browser, "reader", "queues/%2F/orders")
    assert browser.texts("[role=tab]") == ["Peek", "Get"]
    assert {"Purge"} <= buttons(browser)
    assert "Delete" not in buttons(browser)
    assert browser.all("summary", "Bind") == []
    browser.find(".messages summary")
    assert [one.text for one in browser.all(".chosen button")] == ["Download JSON", "Download capture"]


def test_a_user_with_all_permissions_is_offered_all(browser: Browser, client: None) -> None:
    log_in(browser, "writer", "queues/%2F/orders")
    assert browser.texts("[role=tab]") == ["Peek", "Get", "Publish", "Move"]
    assert {"Purge", "Delete", "Unbind"} <= buttons(browser)
    browser.find("summary", "Bind to an exchange")
    browser.visit("queues")
    assert "Add queue" in buttons(browser)
    browser.press("Add queue")
    assert [one.text for one in browser.field("Virtual host", "dialog").find_elements("tag name", "option")] == ["/"]
