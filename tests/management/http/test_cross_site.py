from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.management.http.answers import Refusal
from amqp_broker.management.http.cross_site import check_host, check_site, check_type
from tests.running import RunningServer

JSON = "application/json"
# Requests of RabbitMQ's tools, recorded in front of a broker: one for each method and set of headers. Those with a
# `source` were read in the tool's source instead.
RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("requests_of_tools.json").read_text("utf-8"))
LOGIN = {"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
OF_BROWSERS = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}


def refusal(check: object, *arguments: object) -> tuple[int, str]:
    assert callable(check)
    with pytest.raises(Refusal) as caught:
        check(*arguments)
    return caught.value.status, caught.value.reason


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "localhost:15672"},
        {"sec-fetch-site": "same-origin", "origin": "http://localhost:15672", "host": "localhost:15672"},
        {"sec-fetch-site": "none"},
        # Behind a proxy that changes Host, the browser's word counts.
        {"sec-fetch-site": "same-origin", "origin": "https://broker.example", "host": "127.0.0.1:15672"},
        # Without it, the origin must be that of Host, whatever the scheme.
        {"origin": "http://10.0.0.7:15672", "host": "10.0.0.7:15672"},
        {"origin": "https://broker.example", "host": "broker.example"},
        {"origin": "https://broker.example", "host": "broker.example:443"},
        {"origin": "http://[::1]:15672", "host": "[::1]:15672"},
        {"origin": "http://BROKER:15672", "host": "broker:15672"},
    ],
)
def test_tools_and_the_page_of_the_broker_are_answered(headers: dict[str, str]) -> None:
    check_site(headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        # Another port of the same machine is another origin.
        {"sec-fetch-site": "same-site", "origin": "http://localhost:3000", "host": "localhost:15672"},
        {"sec-fetch-site": "same-origin "},
        {"sec-fetch-site": ""},
        {"origin": "http://evil.example", "host": "localhost:15672"},
        {"origin": "http://localhost:3000", "host": "localhost:15672"},
        {"origin": "http://localhost", "host": "localhost:15672"},
        {"origin": "null", "host": "localhost:15672"},
        {"origin": "", "host": "localhost:15672"},
        {"origin": "http://localhost:15672.evil.example", "host": "localhost:15672"},
        {"origin": "http://localhost:15672"},
    ],
)
def test_other_origins_are_refused(headers: dict[str, str]) -> None:
    status, reason = refusal(check_site, headers)
    assert status == 403
    assert "another" in reason


@pytest.mark.parametrize("given", [JSON, "application/json; charset=utf-8", "Application/JSON"])
def test_a_body_of_json_is_accepted_from_everyone(given: str) -> None:
    check_type({"content-type": given, "origin": "http://localhost:15672"})


@pytest.mark.parametrize(
    "given",
    [
        *(
            "text/plain",
            "text/plain;charset=UTF-8",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
        ),
        *("application/json2", "text/json", "", "application/octet-stream"),
    ],
)
def test_another_type_is_accepted_from_tools_alone(given: str) -> None:
    headers = {"content-type": given, "sec-fetch-mode": "cors", "accept-language": "*"}
    check_type(headers)
    for name in ("origin", "sec-fetch-site", "sec-fetch-dest", "sec-fetch-user", "referer", "cookie"):
        assert refusal(check_type, {**headers, name: "x"}) == (
            415,
            "the Content-Type of a body must be application/json",
        )


def test_no_type_is_accepted_from_tools_alone() -> None:
    check_type({})
    assert refusal(check_type, {"origin": "http://localhost:15672"})[0] == 415


LOOPBACK = "127.0.0.1"


@pytest.mark.parametrize(
    "host",
    [
        *("", "localhost", "localhost:15672", "LOCALHOST:1", "app.localhost:15672", "localhost."),
        *("127.0.0.1:15672", "[::1]:15672", "192.168.0.7", "host.docker.internal:15672"),
        "machine:15672",
    ],
)
@pytest.mark.parametrize("address", [LOOPBACK, "::1", "127.8.8.8", "::ffff:127.0.0.1"])
def test_a_loopback_address_is_reached_by_names_of_this_machine(host: str, address: str) -> None:
    check_host({"host": host} if host else {}, address, {"machine"})


@pytest.mark.parametrize(
    "host", ["evil.example:15672", "localhost.evil.example", "127.0.0.1.evil.example", "a b", "1.2"]
)
@pytest.mark.parametrize("address", [LOOPBACK, "::1", "::ffff:127.0.0.1"])
def test_other_names_of_a_loopback_address_are_refused(host: str, address: str) -> None:
    status, reason = refusal(check_host, {"host": host}, address, ())
    assert (status, reason) == (
        403,
        f"'{host}' is not a name of this machine; the setting management_hosts allows further names",
    )


@pytest.mark.parametrize("address", ["192.168.0.7", "fe80::1%eth0", ""])
def test_other_addresses_are_reached_by_any_name(address: str) -> None:
    check_host({"host": "broker.example:15672"}, address, ())


@pytest.fixture(scope="module")
def running() -> Iterator[RunningServer]:
    with RunningServer(management=True) as server:
        yield server


def ask(running: RunningServer, recorded: dict[str, Any], more: dict[str, str]) -> int:
    """Send a recorded request with a password; return the status of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", running.server.ports["management"], timeout=20)
    connection.putrequest(recorded["method"], recorded["path"], skip_host=True, skip_accept_encoding=True)
    octets = recorded["body"].encode()
    for name, value in {**recorded["headers"], **LOGIN, **more}.items():
        connection.putheader(name, value)
    is_chunked = "Transfer-Encoding" in recorded["headers"]
    if octets and not is_chunked:
        connection.putheader("Content-Length", str(len(octets)))
    connection.endheaders(octets or None, encode_chunked=is_chunked)
    with connection.getresponse() as response:
        response.read()
        return response.status


def name_of(recorded: dict[str, Any]) -> str:
    return f"{recorded['tool']} {recorded['method']} {recorded['path']}"


def test_each_tool_and_method_is_recorded() -> None:
    tools = {recorded["tool"].partition(" ")[0] for recorded in RECORDED}
    libraries = {".NET", "EasyNetQ.Management.Client", "node"}
    assert tools == libraries | {"amqpstorm", "curl", "hop", "rabbit-hole", "rabbitmqadmin"}
    assert {recorded["method"] for recorded in RECORDED} == {"GET", "HEAD", "PUT", "POST", "DELETE"}


@pytest.mark.parametrize("recorded", RECORDED, ids=name_of)
def test_a_request_of_a_tool_is_not_that_of_another_site(running: RunningServer, recorded: dict[str, Any]) -> None:
    # Some names are of objects that were there when the tool asked. RabbitMQ takes definitions as JSON alone.
    has_type = any(name.lower() == "content-type" for name in recorded["headers"])
    is_refused = (recorded["method"], recorded["path"]) == ("POST", "/api/definitions") and not has_type
    assert ask(running, recorded, {}) in ({415} if is_refused else {200, 201, 204, 404})
    assert ask(running, recorded, OF_BROWSERS) == 403
