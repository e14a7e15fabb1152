from __future__ import annotations

import json
from pathlib import Path

from amqp_broker.broker.admin.access import TopicPermission
from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from amqp_broker.server.server import Server
from tests.page.browser import Browser
from tests.page.client import channel
from tests.running import RunningServer


def test_a_policy_is_added_and_applies(browser: Browser, running: RunningServer) -> None:
    with channel(running.port) as client:
        client.queue_declare("limited")
    browser.start("policies")
    browser.press("Add policy")
    browser.fill("Name", "short", "dialog")
    browser.fill("Pattern", "^lim", "dialog")
    browser.press("max-length", "dialog")
    browser.type("5")
    browser.press("Add policy", "dialog")
    browser.toast("short now applies")
    assert browser.row("short")[:6] == ["/", "short", "^lim", "all", '{"max-length":5}', "0"]
    browser.go("queues")
    assert "short" in browser.row("limited")[3]
    browser.go("policies")
    browser.press("Clear")
    browser.press("Clear", "dialog")
    browser.until(lambda: len(list(running.server.broker.vhosts["/"].policies)) == 0)


def test_a_user_a_virtual_host_and_permissions_are_added(browser: Browser, running: RunningServer) -> None:
    browser.start("vhosts")
    browser.press("Add virtual host")
    browser.fill("Name", "shop", "dialog")
    browser.fill("Default queue type", "Classic", "dialog")
    browser.press("Add virtual host", "dialog")
    browser.find("tbody a", "shop")
    assert running.server.broker.vhosts["shop"].metadata.default_queue_type == "classic"
    browser.go("users")
    browser.press("Add user")
    browser.fill("Name", "anna", "dialog")
    browser.fill("Password", "secret", "dialog")
    browser.field("management", "dialog").click()
    browser.press("Add user", "dialog")
    browser.until(lambda: browser.row("anna")[2] == "No access")
    assert browser.row("guest")[2] == "/, shop"
    browser.click("tbody a", "anna")
    browser.fill("Virtual host", "shop", ".more")
    browser.fill("Configure", "^anna", ".more")
    browser.press("Set permissions", ".more")
    browser.until(lambda: browser.row("shop")[:4] == ["shop", "^anna", ".*", ".*"])
    user = running.server.broker.users["anna"]
    assert user.can_open("shop")
    assert user.tags == ("management",)
    # The selector of virtual hosts has the new one.
    browser.until(lambda: "shop" in browser.find("#vhost").text)
    browser.press("Delete")
    browser.shows("0 connections will be closed.", "dialog")
    browser.press("Delete user", "dialog")
    browser.until(lambda: "anna" not in running.server.broker.users)


def test_a_change_of_a_user_keeps_what_it_is_not_about(browser: Browser, running: RunningServer) -> None:
    def add(server: Server) -> None:
        users = server.broker.users
        user = users.add("otto", "otto", tags=("team-a", "management"))
        for exchange in ("amq.topic", "orders"):
            users.set_topic_permission(user, "/", exchange, TopicPermission())

    running.ask(add)
    browser.start("users/otto")
    browser.press("Change")
    browser.field("monitoring", "dialog").click()
    browser.press("Change user", "dialog")
    browser.until(lambda: running.server.broker.users["otto"].tags == ("monitoring", "management", "team-a"))
    browser.press("Clear")
    browser.until(lambda: list(running.server.broker.users["otto"].topic_permissions) == [("/", "amq.topic")])


def test_lists_show_the_selected_virtual_host_only(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.add_vhost("other"))
    browser.start("exchanges")
    browser.until(lambda: {"/", "other"} <= {one.text for one in browser.all("tbody td:first-child")})
    browser.script(
        "const one = document.getElementById('vhost'); one.value = 'other'; one.dispatchEvent(new Event('change'))"
    )
    browser.until(lambda: {one.text for one in browser.all("tbody td:first-child")} == {"other"})


def test_a_connection_is_force_closed(browser: Browser, running: RunningServer) -> None:
    with channel(running.port, "victim") as client:
        browser.start("connections")
        browser.click("tbody a", "victim")
        browser.shows("pika")
        browser.press("Force close")
        browser.press("Close connection", "dialog")
        running.until(lambda server: not server.broker.connections)
        assert client.connection.is_open  # it has not read the close yet


def test_a_limit_is_set(browser: Browser, running: RunningServer) -> None:
    browser.start("limits")
    browser.press("Set limit of a virtual host")
    browser.fill("Limit", "max-queues", "dialog")
    browser.fill("Value", "1000", "dialog")
    browser.press("Set limit", "dialog")
    browser.until(lambda: browser.row("/")[2] == "1,000")
    assert running.server.broker.vhosts["/"].limits.given == {"max-queues": 1000}
    browser.press("Clear")
    browser.until(lambda: running.server.broker.vhosts["/"].limits.given == {})


def test_definitions_are_exported_and_imported(browser: Browser, running: RunningServer, tmp_path: Path) -> None:
    browser.driver.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    # JavaScript's numbers have neither.
    exact = {"x-whole": 2**53 + 1, "x-double": 1.0}
    exchange = ExchangeDeclaration("exact", "headers", exact, is_durable=True)
    running.ask(lambda server: server.broker.vhosts["/"].declare_exchange(exchange))
    browser.start("definitions")
    browser.fill("File name", "mine.json")
    browser.press("Export")
    # Chromium creates the file before it has its content.
    browser.until(lambda: (tmp_path / "mine.json").exists() and (tmp_path / "mine.json").stat().st_size)
    definitions = json.loads((tmp_path / "mine.json").read_text("utf-8"))
    (exported,) = (one for one in definitions["exchanges"] if one["name"] == "exact")
    assert repr(exported["arguments"]) == repr(exact)
    definitions["exchanges"].append({**exported, "name": "imported"})
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(definitions), "utf-8")
    browser.field("File").send_keys(str(changed))
    browser.shows("changed.json contains")
    browser.press("Import")
    browser.toast("The definitions were imported")
    imported = running.server.broker.vhosts["/"].exchanges["imported"]
    assert repr(imported.arguments) == repr(exact)
