"""Statuses of cowboy, as RabbitMQ 3.10.8, 4.0.5 and 4.3.6 give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from amqp_broker.management.api_sections import SECTIONS
from amqp_broker.management.http.answers import Refusal
from amqp_broker.management.http.endpoint import Endpoint
from amqp_broker.management.http.negotiation import ANSWERS, BODIES, check_accept, check_body_type
from tests.management.test_application import Browser
from tests.running import RunningServer

ENDPOINTS = {str(endpoint): endpoint for section in SECTIONS.values() for endpoint in section}
LIST = ENDPOINTS["GET /api/vhosts"]
LIMIT = ENDPOINTS["PUT /api/vhost-limits/{vhost}/{name}"]
QUEUE = ENDPOINTS["PUT /api/queues/{vhost}/{name}"]
IMPORT = ENDPOINTS["POST /api/definitions"]
CONFIGURATION = ENDPOINTS["GET /api/config/effective"]
OF_JAVA = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"


def status(
    check: Callable[[Endpoint, Mapping[str, str]], None], endpoint: Endpoint, headers: Mapping[str, str]
) -> int | None:
    try:
        check(endpoint, headers)
    except Refusal as refusal:
        return refusal.status
    return None


@pytest.mark.parametrize(
    "given",
    [
        *("", "*/*", "application/json", "Application/JSON", "application/*", "*", "*; q=.2", OF_JAVA),
        *("application/json;q=0", "text/html, application/json;q=0.5", "application/json, text/plain, */*"),
        'text/html;a="x,y", application/json',
    ],
)
def test_a_client_that_accepts_json_is_answered(given: str) -> None:
    assert status(check_accept, LIST, {"accept": given}) is None


def test_a_client_without_the_header_is_answered() -> None:
    assert status(check_accept, LIST, {}) is None


@pytest.mark.parametrize(
    "given", ["text/html", "text/plain, image/png", "application/json; charset=utf-8", "*/*;version=1", "text/*"]
)
def test_a_client_that_does_not_accept_json_is_refused(given: str) -> None:
    assert status(check_accept, LIST, {"accept": given}) == 406


@pytest.mark.parametrize("given", ["nonsense", "application/json, nonsense", "/", "application/json;;"])
def test_a_list_that_cannot_be_read_is_refused(given: str) -> None:
    assert status(check_accept, LIST, {"accept": given}) == 400


def test_paths_without_json_need_html_or_text() -> None:
    assert [status(check_accept, LIMIT, {"accept": f"{kind}"}) for kind in ("application/json", "text/html")] == [
        406,
        None,
    ]
    assert status(check_accept, CONFIGURATION, {"accept": "text/plain; charset=utf-8"}) is None
    assert status(check_accept, CONFIGURATION, {"accept": "application/json"}) == 406


def test_only_the_api_of_rabbitmq_negotiates() -> None:
    own = next(endpoint for name, endpoint in ENDPOINTS.items() if name.startswith("POST /_broker/"))
    assert status(check_accept, own, {"accept": "nonsense"}) is None
    assert status(check_body_type, own, {"content-type": "nonsense"}) is None


@pytest.mark.parametrize(
    ("given", "of_queue", "of_limit"),
    [
        (None, None, 415),
        ("application/json", None, None),
        ("Application/JSON; charset=utf-8", None, None),
        ("text/plain;charset=UTF-8", None, 415),
        ("application/octet-stream", None, 415),
        ("nonsense", 415, 415),
        ("", 415, 415),
    ],
)
def test_few_paths_take_json_alone(given: str | None, of_queue: int | None, of_limit: int | None) -> None:
    headers = {} if given is None else {"content-type": given}
    assert status(check_body_type, QUEUE, headers) == of_queue
    assert status(check_body_type, LIMIT, headers) == of_limit
    assert status(check_body_type, LIST, headers) is None


def test_a_login_is_judged_before_the_type_of_its_form() -> None:
    assert status(check_body_type, ENDPOINTS["POST /api/login"], {"content-type": "application/json"}) is None


def test_definitions_may_come_as_a_form_with_a_file() -> None:
    assert status(check_body_type, IMPORT, {"content-type": "multipart/form-data; boundary=x"}) is None
    assert status(check_body_type, IMPORT, {"content-type": "application/x-www-form-urlencoded"}) == 415


def test_each_path_with_types_of_its_own_is_a_path() -> None:
    assert {*ANSWERS, *BODIES} <= {endpoint.path for endpoint in ENDPOINTS.values()}


def test_the_server_answers_without_a_body() -> None:
    with RunningServer(management=True) as server:
        browser = Browser(server.server.ports["management"])
        assert browser.ask("GET", "/api/vhosts", Accept="text/html")[:2] == (406, None)
        assert browser.ask("GET", "/api/vhosts", Accept="application/json")[0] == 200
