"""Requests of the pages of another site, which have no effect on the broker of the user."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from compat.waiting import wait_until
from tests.page.browser import OTHER_SITE, Browser
from tests.running import RunningServer

# A definition whose form field has the name up to `=` and the value behind it: together they are JSON.
BEFORE = '{"users": [{"name": "mallory", "password": "x", "tags": "administrator"}], "ignored": "'
LOGIN = "Basic Z3Vlc3Q6Z3Vlc3Q="
# A script sends a request, and says that it was sent or refused by the browser.
SEND = """
const [url, options, done] = arguments;
fetch(url, options).then((answer) => done(`${answer.type} ${answer.status}`), (error) => done(`no answer: ${error}`));
"""


class Page(BaseHTTPRequestHandler):
    """An empty page, which tests fill."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>another site</title><body></body>")

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://{OTHER_SITE}:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def port(running: RunningServer) -> int:
    return running.server.ports["management"]


@pytest.fixture
def visited(driver: webdriver.Chrome, site: str, port: int) -> Iterator[webdriver.Chrome]:
    """Provide the browser on a page of the other site; it has the password of the broker."""
    # The user has logged in with a password in the address once, so the browser sends it again by itself.
    driver.get(f"http://guest:guest@127.0.0.1:{port}/api/whoami")
    assert "guest" in driver.page_source
    driver.get(site)
    yield driver
    Browser(driver, port).complaints()
    driver.get("about:blank")


def users(running: RunningServer) -> set[str]:
    names: set[str] = running.ask(lambda server: set(server.broker.users))
    return names


def send(driver: webdriver.Chrome, url: str, **options: object) -> str:
    answer: str = driver.execute_async_script(SEND, url, options)
    return answer


def submit(driver: webdriver.Chrome, action: str, encoding: str) -> str:
    """Send a form to the broker, and return the answer that the browser shows."""
    driver.execute_script(
        "const form = document.createElement('form'); [form.action, form.enctype] = arguments; form.method = 'POST';"
        "const field = document.createElement('input'); [field.name, field.value] = [arguments[2], '\"}'];"
        "form.append(field); document.body.append(form); form.submit();",
        *(action, encoding, BEFORE),
    )
    wait_until(lambda: "another site" not in driver.title and bool(driver.find_element(By.TAG_NAME, "body").text))
    return driver.find_element(By.TAG_NAME, "body").text


@pytest.mark.parametrize("encoding", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
@pytest.mark.parametrize("path", ["api/definitions", "_broker/stop"])
def test_a_form_has_no_effect(
    visited: webdriver.Chrome, running: RunningServer, port: int, path: str, encoding: str
) -> None:
    shown = submit(visited, f"http://guest:guest@127.0.0.1:{port}/{path}", encoding)
    assert "another site sent this request" in shown
    assert users(running) == {"guest"}


@pytest.mark.parametrize("mode", ["no-cors", "cors"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_script_has_no_effect_and_sees_no_answer(
    visited: webdriver.Chrome, running: RunningServer, port: int, method: str, mode: str
) -> None:
    headers = {"Content-Type": "application/json", "Authorization": LOGIN} if mode == "cors" else {}
    options = {"method": method, "mode": mode, "credentials": "include", "headers": headers, "body": BEFORE + '"}'}
    for path in ("api/definitions", "api/users/mallory", "api/vhosts/new", "_broker/clock/freeze"):
        answer = send(visited, f"http://127.0.0.1:{port}/{path}", **options)
        assert answer == "opaque 0" or answer.startswith("no answer")
    assert users(running) == {"guest"}
    assert running.ask(lambda server: set(server.broker.vhosts)) == {"/"}
    assert running.ask(lambda server: server.clock.is_frozen) is False


def test_an_image_and_a_script_of_the_broker_are_not_served(visited: webdriver.Chrome, port: int) -> None:
    for kind in ("img", "script"):
        event = visited.execute_async_script(
            "const [kind, url, done] = arguments; const one = document.createElement(kind);"
            "one.onload = () => done('load'); one.onerror = () => done('error'); one.src = url;"
            "document.body.append(one);",
            *(kind, f"http://127.0.0.1:{port}/api/overview"),
        )
        assert event == "error"


def test_a_websocket_is_refused(visited: webdriver.Chrome, port: int) -> None:
    event = visited.execute_async_script(
        "const [url, done] = arguments; const one = new WebSocket(url);"
        "one.onopen = () => done('open'); one.onerror = () => done('error');",
        f"ws://127.0.0.1:{port}/_broker/events",
    )
    assert event == "error"


def test_a_name_that_leads_to_this_machine_is_refused(
    driver: webdriver.Chrome, running: RunningServer, port: int
) -> None:
    """For the browser, the broker is a server of the other site (DNS rebinding)."""
    own = f"http://{OTHER_SITE}:{port}/"
    driver.get(own + "favicon.svg")
    answer = driver.execute_async_script(
        "const [url, login, done] = arguments;"
        "fetch(url, {headers: {Authorization: login}}).then(async (one) => done([one.status, await one.text()]));",
        *(own + "api/whoami", LOGIN),
    )
    assert answer[0] == 403
    assert f"'{OTHER_SITE}:{port}' is not a name of this machine" in answer[1]
    done = send(driver, own + "api/users/mallory", method="PUT", body="{}", headers={"Authorization": LOGIN})
    assert done == "basic 403"
    assert users(running) == {"guest"}
    Browser(driver, port).complaints()
    driver.get("about:blank")
