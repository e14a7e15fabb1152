from __future__ import annotations

import base64

import msgspec
import pytest

from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.api import definitions
from amqp_broker.management.http.answers import Answer
from amqp_broker.management.http.request import Request
from tests.management.asking import Desk

DOCUMENT = {"vhosts": [{"name": "v"}], "queues": [{"name": "q", "vhost": "v", "durable": True, "arguments": {}}]}


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_exported_definitions_can_be_imported(desk: Desk) -> None:
    assert desk.ask("POST", "/api/definitions", DOCUMENT)[0] == 204
    status, document = desk.get("/api/definitions")
    assert status == 200
    other = Desk()
    assert other.ask("POST", "/api/definitions", document)[0] == 204
    assert list(other.broker.vhosts["v"].queues) == ["q"]


def test_a_single_vhost_is_exported_and_imported(desk: Desk) -> None:
    desk.ask("POST", "/api/definitions", DOCUMENT)
    document = desk.get("/api/definitions/v")[1]
    desk.ask("PUT", "/api/vhosts/w")
    assert desk.ask("POST", "/api/definitions/w", document)[0] == 204
    assert list(desk.broker.vhosts["w"].queues) == ["q"]
    assert desk.get("/api/definitions/none") == (400, "vhost_not_found")
    assert desk.ask("POST", "/api/definitions/none", document) == (404, "vhost_not_found")


def test_a_form_may_contain_the_document_as_a_file(desk: Desk) -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="d.json"\r\n\r\n%s\r\n--b--\r\n'
    headers = {"content-type": "multipart/form-data; boundary=b"}
    octets = form % msgspec.json.encode(DOCUMENT)
    assert desk.ask("POST", "/api/definitions", octets, headers=headers)[0] == 204
    assert "v" in desk.broker.vhosts


@pytest.mark.parametrize(
    ("octets", "kind"),
    [
        (b"", "multipart/form-data"),
        (b"--b--", "multipart/form-data; boundary=b"),
        (b"--b\r\n\r\nx\r\n--b--", "multipart/form-data; boundary=b"),
        (b"\xff" * 100, "multipart/form-data; boundary=\xff"),
    ],
)
def test_a_form_without_a_file_is_refused(desk: Desk, octets: bytes, kind: str) -> None:
    status, reason = desk.ask("POST", "/api/definitions", octets, headers={"content-type": kind})
    assert (status, reason) == (400, "the form has no part named 'file'")


def test_an_invalid_document_is_refused(desk: Desk) -> None:
    assert desk.ask("POST", "/api/definitions", b"{") == (400, "failed_to_parse_json")
    status, reason = desk.ask("POST", "/api/definitions", {"queues": [{"name": "q"}]})
    assert (status, "q" in reason) == (400, True)


def test_a_download_has_a_name_that_is_safe_in_a_header(desk: Desk) -> None:
    request = Request(desk.broker, desk.node, desk.user, query={"download": 'a"b\r\nSet-Cookie: x/..json'})
    answer = finished(definitions.get(request))
    assert isinstance(answer, Answer)
    assert answer.headers == {"Content-Disposition": "attachment; filename=a_b__Set-Cookie__x_..json"}


def test_exported_definitions_include_password_hashes(desk: Desk) -> None:
    exported = desk.get("/api/definitions")[1]["users"][0]["password_hash"]
    assert base64.b64decode(exported) == desk.broker.users["guest"].password_hash
