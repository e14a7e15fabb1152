"""Requests to the HTTP API."""

from __future__ import annotations

import pytest

from amqp_broker.conformance.api_client import HttpApi, Unanswered, filled
from compat.brokers import free_port
from tests.running import RunningServer


def test_an_answer_has_its_status_and_decoded_value() -> None:
    with RunningServer(management=True, management_port=0) as server:
        api = HttpApi(f"{server.management_url}/", "guest", "guest")
        assert api.ask("GET", "whoami").value["name"] == "guest"
        assert api.ask("PUT", "queues/%2F/q", {"durable": True}).status == 201
        assert api.ask("PUT", "queues/%2F/q", b"{").status == 400
        assert HttpApi(server.management_url, "guest", "wrong").ask("GET", "whoami").status == 401


def test_an_api_that_does_not_answer_is_a_sentence() -> None:
    with pytest.raises(Unanswered, match=r"the HTTP API at http://127\.0\.0\.1:\d+ does not answer: "):
        HttpApi(f"http://127.0.0.1:{free_port()}", "guest", "guest").ask("GET", "whoami")


def test_texts_in_braces_are_filled_in_at_any_depth() -> None:
    body = {"pattern": "^{prefix}q0$", "definition": {"keys": ["{prefix}q1", 1]}}
    assert filled(body, {"prefix": "1."}) == {"pattern": "^1.q0$", "definition": {"keys": ["1.q1", 1]}}
