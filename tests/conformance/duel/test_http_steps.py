"""Requests of a program to the HTTP API."""

from __future__ import annotations

from amqp_broker.conformance.api_client import Answer
from amqp_broker.conformance.duel.http_steps import PERMISSIONS, has_user, limits_queues, shown, uses_http
from amqp_broker.conformance.duel.steps import Http, Wait


def test_an_answer_is_a_line_with_its_keys_in_order() -> None:
    step = Http("GET", "queues/{vhost}/{prefix}q0")
    assert shown(step, Answer(200, {"b": 1, "a": None}, {})) == (
        'GET queues/{vhost}/{prefix}q0: 200 {"a": null, "b": 1}'
    )


def test_a_program_that_changes_permissions_has_a_user_of_its_own() -> None:
    assert has_user((Http("DELETE", PERMISSIONS),))
    assert not has_user((Http("PUT", "policies/{vhost}/p"), Wait(1)))


def test_a_program_without_requests_needs_no_http_api() -> None:
    assert not uses_http((Wait(1),))


def test_a_limit_of_queues_is_one_of_the_virtual_host() -> None:
    assert limits_queues((Http("PUT", "vhost-limits/{vhost}/max-queues"),))
    assert not limits_queues((Http("PUT", "vhost-limits/{vhost}/max-connections"), Wait(1)))
