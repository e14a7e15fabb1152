"""Texts from clients and users are shown as text on every page, and never run (hostile.py)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from amqp_broker.management.page.files import FOLDER
from tests.page.attacked import PASSWORD, USER, ask, attacked, client, part, publish
from tests.page.browser import Browser
from tests.page.hostile import ANY_CONTEXT, ATTACKS, WATCH, findings, shown
from tests.page.routes import LISTS, OBJECTS
from tests.running import RunningServer

# The attacks that need no decoding.
MARKUP = [one for one in ATTACKS if "data-attack" in one and not re.search(r"&lt;|%3C|\\\\|\u200b", one)]
# Pages that show none of the texts until something is done there.
PLAIN = ("", "messages", "clock", "definitions", "features")


@pytest.fixture(scope="module")
def texts(running: RunningServer) -> Iterator[None]:
    with attacked(running):
        yield


@pytest.fixture
def page(driver: webdriver.Chrome, browser: Browser, texts: None) -> Iterator[Browser]:
    """Provide the page with a watch; at the end nothing has run.

    The browser ignores the policy for scripts, so that each script of an attack would run.
    """
    driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    log_in(browser)
    yield browser
    assert findings(browser) == []
    driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})


def log_in(browser: Browser) -> None:
    """Log in as a user whose name is an attack, with one virtual host shown in lists."""
    browser.open()
    browser.script("sessionStorage.setItem('vhost', '/')")
    browser.log_in(USER, PASSWORD)
    browser.find("main h1")
    assert browser.find("#logout").text == USER


def go(browser: Browser, route: str, text: str = "") -> None:
    """Open a page, and return when it shows the text, plain or in JSON, and nothing has run."""
    browser.go(route)
    found = "return [text, JSON.stringify(text).slice(1, -1)].some((one) => shown.includes(one))"
    # Titles of pictures have characters that isolate parts.
    contents = (
        "const [text] = arguments;"
        "const shown = document.querySelector('main').textContent.replaceAll(/[\\u2068\\u2069]/g, '');"
    )
    browser.until(lambda: browser.script(contents + found, shown(text)))
    assert findings(browser) == []


def unfold(browser: Browser) -> None:
    """Open what is folded on a page, and each dialog."""
    browser.script("for (const one of document.querySelectorAll('main details')) one.open = true")
    browser.script("for (const one of document.querySelectorAll('main [role=tab], main .payload button')) one.click()")
    for number in range(len(browser.all("main .title .actions button, main button.link"))):
        is_open = browser.script(
            "document.querySelectorAll('main .title .actions button, main button.link')[arguments[0]].click();"
            "return document.querySelector('dialog[open]') !== null",
            number,
        )
        if is_open:
            assert findings(browser) == []
            browser.script("document.querySelector('dialog[open]').close()")
    assert findings(browser) == []


def submit(browser: Browser, form: str, text: str) -> None:
    """Submit a form with a text in all fields. Return when the answer is shown and nothing has run."""
    is_sent = browser.script(
        "const form = document.querySelector(arguments[0]);"
        "for (const one of form.querySelectorAll('.hints button')) one.click();"
        "for (const one of form.querySelectorAll('input, textarea'))"
        "  if (['text', 'password', 'textarea'].includes(one.type)) one.value = arguments[1];"
        "  else if (one.type === 'number') one.value = 1;"
        "form.requestSubmit();"
        "return form.checkValidity()",
        form,
        text,
    )
    assert is_sent
    # The button is disabled until the answer is there; a dialog closes then, unless it shows a problem.
    waits = "return document.querySelector(`${arguments[0]} [type=submit]:disabled`) !== null"
    browser.until(lambda: not browser.script(waits, form))
    assert findings(browser) == []


@pytest.mark.parametrize("route", LISTS)
def test_no_list_runs_a_script(page: Browser, route: str) -> None:
    if route in PLAIN:
        go(page, route)
    elif route == "demo":
        go(page, route, ANY_CONTEXT)
    else:
        if route == "advice":
            go(page, route)
            page.press("Show all")
        for text in ATTACKS:
            go(page, route, text)
    if route != "clock":
        unfold(page)
    page.script(
        "for (const one of document.querySelectorAll('main input[type=search]'))"
        " { one.value = arguments[0]; one.dispatchEvent(new Event('input')); }",
        "(" + ANY_CONTEXT,
    )
    if ".*" in page.texts("main label, main h1"):
        page.script("document.querySelector('main label.check input').click()")
        page.find("main .problem")


@pytest.mark.parametrize("text", ATTACKS, ids=range(len(ATTACKS)))
def test_no_page_of_an_object_runs_a_script(page: Browser, running: RunningServer, text: str) -> None:
    [connection] = [one for one in ask(running, "GET", "/api/connections") if one["user_provided_name"] == text]
    names = {"connection": part(connection["name"]), "channel": part(connection["name"] + " (1)"), "name": part(text)}
    for route in OBJECTS:
        go(page, route.format(**names), text)
        unfold(page)
    go(page, f"queues/%2F/{part('excl.' + text[:200])}", connection["name"])


def test_no_live_message_runs_a_script(page: Browser, running: RunningServer) -> None:
    go(page, "messages")
    running.until(lambda server: server.broker.vhosts["/"].trace is not None)
    for text in ATTACKS:
        with client(running, text) as channel:
            publish(channel, text)
        page.find(".flow .event.publish", "lost.")
        for number in range(len(page.all(".flow .event"))):
            page.script("document.querySelectorAll('.flow .event')[arguments[0]].click()", number)
            page.script("document.querySelector('.inspector-head button.small').click()")
            page.find(".inspector .trail-list")
            page.script("document.querySelector('.inspector .payload button')?.click()")
        assert findings(page) == []
        page.press("Clear")


def test_no_life_of_a_message_runs_a_script(page: Browser, running: RunningServer) -> None:
    running.ask(lambda server: server.broker.event_logs.start_all())
    for text in ATTACKS:
        with client(running, text) as channel:
            publish(channel, text)
        go(page, f"queues/%2F/{part(text)}", text)
        page.find(".lives details")
        unfold(page)
        page.find(".life-drawing")
        assert findings(page) == []
    running.ask(lambda server: server.broker.event_logs.stop_all())


@pytest.mark.parametrize("route", [one for one in (*LISTS, *OBJECTS[2:]) if one != "definitions"])
def test_no_answer_to_a_form_runs_a_script(page: Browser, route: str) -> None:
    """The page shows texts that were sent, when they are refused and when they are taken."""
    go(page, route.format(name=part(ATTACKS[0])))
    unfold(page)
    for number in range(len(page.script("return [...document.querySelectorAll('main form')]"))):
        page.script("document.querySelectorAll('main form')[arguments[0]].id = 'tried'", number)
        submit(page, "#tried", ANY_CONTEXT)
        page.script("document.getElementById('tried').id = ''")
    for number in range(len(page.all("main [data-key=n]"))):
        page.script("document.querySelectorAll('main [data-key=n]')[arguments[0]].click()", number)
        submit(page, "dialog form", ANY_CONTEXT)
        page.script("document.querySelector('dialog[open]')?.close()")


def test_no_file_of_definitions_runs_a_script(page: Browser, tmp_path: Path) -> None:
    page.driver.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    go(page, "definitions")
    page.fill("File name", ANY_CONTEXT)
    page.press("Export")
    page.shows(ANY_CONTEXT)
    contents = [(text, content) for text in ATTACKS for content in (text, json.dumps({text: [text]}))]
    for number, (text, content) in enumerate(contents, 1000):
        # A name of a file has neither a slash nor more than 255 octets.
        path = tmp_path / f"{number} {text.replace('/', '-')[:200]}"
        path.write_text(content, "utf-8")
        page.field("File").send_keys(str(path))
        page.shows(str(number))
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps({"vhosts": [{"name": ANY_CONTEXT}], "queues": [{"name": ANY_CONTEXT}]}), "utf-8")
    page.field("File").send_keys(str(path))
    page.press("Import")
    page.find("main form .problem, #toasts .toast", "")


def test_no_refused_login_runs_a_script(page: Browser) -> None:
    page.press(USER)
    for text in (ATTACKS[0], ANY_CONTEXT):
        submit(page, "form", text)
        page.find(".problem", "Login failed")


def test_no_address_runs_a_script(page: Browser) -> None:
    for text in ATTACKS:
        for route in (text, part(text), *(f"{kind}/{part(text)}" for kind in ("users", "vhosts", "connections"))):
            page.script("location.hash = arguments[0]", "#/" + route + "/" + route)
            page.shows("This page does not exist")
        for kind in ("queues", "exchanges"):
            go(page, f"{kind}/{part(text)}/{part('no ' + text)}", "does not exist")


def test_no_answer_of_the_api_is_a_page(page: Browser, running: RunningServer) -> None:
    """A link to the API shows text, whatever it contains."""
    log_in_as_browser = page.url.replace("//", "//guest:guest@")
    for text in ATTACKS:
        for path in ("", "api/queues/%2F/", "api/queues?use_regex=true&name=("):
            page.driver.get(log_in_as_browser + path + part(text))
            assert page.script("return document.contentType") != "text/html"
            assert findings(page) == []


def test_every_page_was_visited() -> None:
    app = (FOLDER / "js" / "app.js").read_text("utf-8")
    patterns = re.findall(r"^  \[/(.+)/, \w+\.\w+\],$", app, re.MULTILINE)
    assert len(patterns) > 20
    visited = [route.replace("%2F", "x") for route in (*LISTS, *OBJECTS)]
    assert [one for one in patterns if not any(re.match(one.replace("\\/", "/"), route) for route in visited)] == []


@pytest.mark.parametrize("text", MARKUP, ids=range(len(MARKUP)))
def test_the_watch_notices_an_attack_that_succeeds(page: Browser, text: str) -> None:
    """Otherwise the other tests could not fail."""
    markup = f"<p title=\"{text}\" class='{text}' id={text}>"
    page.script("document.body.insertAdjacentHTML('beforeend', arguments[0])", markup)
    page.until(lambda: findings(page))
    # End the attack, and forget what the browser has logged about it.
    page.driver.get("about:blank")
    page.complaints()
    log_in(page)


@pytest.mark.parametrize(
    "markup",
    [
        "<p>\u202e</p>",
        "<p>\u05d0 1</p>",
        "<p title='\u2066'></p>",
        "<p aria-label='\u200f'></p>",
        "<p title='\u05d0'></p>",
        "<svg><text>\u05d0</text></svg>",
    ],
)
def test_the_watch_notices_a_text_that_changes_the_direction(page: Browser, markup: str) -> None:
    page.script("document.body.insertAdjacentHTML('beforeend', arguments[0])", markup)
    assert len(findings(page)) == 1
    log_in(page)


def test_the_policy_for_scripts_blocks_what_the_page_lets_through(browser: Browser) -> None:
    browser.start()
    browser.script(
        "const one = document.createElement('img'); one.setAttribute('onerror', 'window.hit=1'); one.src = '/x';"
        "document.body.append(one);"
    )
    browser.until(lambda: any("Content Security Policy" in one for one in browser.complaints()))
    assert browser.script("return window.hit") is None
