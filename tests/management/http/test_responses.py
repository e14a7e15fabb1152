from __future__ import annotations

from amqp_broker.management.http.answers import Answer, Challenge, unauthenticated
from amqp_broker.management.http.responses import allowed, refuse, respond


def test_methods_are_in_the_order_of_rabbitmq() -> None:
    assert allowed(["DELETE", "GET", "PUT"]) == "HEAD, GET, PUT, DELETE, OPTIONS"
    assert allowed(["POST"]) == "POST, OPTIONS"


def test_values_are_sent_as_json_and_octets_unchanged() -> None:
    assert (respond({"a": 1}).body, respond({"a": 1}).content_type) == (b'{"a":1}', "application/json")
    assert respond(Answer(200, b"text", {"Content-Type": "text/plain"})).body == b"text"
    assert respond(Answer(204)).body is None


def test_missing_or_wrong_credentials_are_challenged() -> None:
    for reason, body in ((None, None), ("Login failed", b'{"error":"not_authorized","reason":"Login failed"}')):
        response = refuse(Challenge(reason))
        assert (response.status, response.headers["WWW-Authenticate"]) == (401, 'Basic realm="RabbitMQ Management"')
        assert response.body == body


def test_wrong_credentials_are_not_challenged_by_rabbitmq_4() -> None:
    assert "WWW-Authenticate" not in refuse(unauthenticated("Not_Authorized")).headers
