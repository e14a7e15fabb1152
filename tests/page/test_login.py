from __future__ import annotations

from tests.page.browser import Browser
from tests.running import RunningServer


def test_a_wrong_password_is_refused_and_the_right_one_accepted(browser: Browser) -> None:
    browser.open()
    browser.log_in(password="wrong")
    browser.shows("Login failed", ".login .problem")
    browser.log_in()
    browser.shows("Overview", "main h1")
    assert "guest" not in browser.driver.current_url


def test_logging_out_removes_the_login(browser: Browser) -> None:
    browser.start("queues")
    browser.click("#logout")
    browser.find(".login")
    assert browser.script("return sessionStorage.getItem('authorization')") is None
    browser.driver.refresh()
    browser.find(".login")


def test_a_user_without_tags_is_refused(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.users.add("nobody", "secret"))
    browser.open()
    browser.log_in("nobody", "secret")
    browser.shows("Not", ".login .problem")


def test_only_administrators_see_administrative_pages(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.users.add("watcher", "secret", tags=("monitoring",)))
    browser.open()
    browser.log_in("watcher", "secret")
    browser.find("nav a", "Overview")
    labels = browser.texts("nav a")
    assert "Users" not in labels
    assert "Live Messages" not in labels
    assert "Policies" in labels


def test_the_address_of_a_forbidden_page_shows_the_required_tag(browser: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.users.add("reader", "secret", tags=("management",)))
    browser.open()
    browser.log_in("reader", "secret")
    browser.find("nav a", "Overview")
    browser.shows("Queued messages")
    assert not browser.all("main h2", "Listening ports")
    for route in ("users", "users/guest", "messages"):
        browser.script("location.hash = arguments[0]", f"#/{route}")
        browser.shows("This page requires the tag administrator.")
    browser.go("queues")
    browser.shows("Queues and Streams", "main h1")
