from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.broker import PORTION_STEPS
from amqp_broker.management.api import bindings
from amqp_broker.management.documents.exporting import export
from amqp_broker.management.http.answers import Answer
from amqp_broker.management.http.request import Request
from tests.management.asking import Desk

B = "/api/bindings/%2F/e/"


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    peer = desk.lab.connect()
    peer.call(commands.Queue.Declare(queue="q"))
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type="topic"))
    return desk


def keys(answer: tuple[int, Any]) -> list[str]:
    return [row["properties_key"] for row in answer[1]]


@pytest.mark.parametrize(
    ("routing_key", "quoted"),
    [("", "~"), ("a.#", "a.%23"), ("k~/ %é", "k%7E%2F+%25%C3%A9"), ("+", "%2B"), ("a%2Fb", "a%252Fb"), ("~", "%7E")],
)
@pytest.mark.parametrize("arguments", [{}, {"k": 1}])
def test_a_binding_is_found_and_removed_by_its_properties_key(
    desk: Desk, routing_key: str, quoted: str, arguments: dict[str, int]
) -> None:
    from urllib.parse import quote

    assert desk.ask("POST", B + "x/q/q", {"routing_key": routing_key, "arguments": arguments})[0] == 201
    (key,) = keys(desk.get(B + "x/q/q"))
    assert key == quoted if not arguments else key.startswith(quoted.removeprefix("~") + "~")
    path = B + "x/q/q/" + quote(key, safe="")
    status, binding = desk.get(path)
    assert (status, binding["routing_key"], binding["arguments"]) == (200, routing_key, arguments)
    assert desk.ask("DELETE", path) == (204, None)
    assert desk.ask("DELETE", path) == (404, "Not Found")


def test_bindings_that_differ_by_arguments_have_different_keys(desk: Desk) -> None:
    for number in range(3):
        desk.ask("POST", B + "x/q/q", {"routing_key": "k", "arguments": {"n": number}})
    assert len(set(keys(desk.get(B + "x/q/q")))) == 3
    assert desk.get(B + "x/q/q/k") == (404, "Not Found")


def test_the_location_of_a_new_binding_is_answered(desk: Desk) -> None:
    path = {"vhost": "/", "source": "x", "kind": "q", "destination": "q"}
    request = Request(desk.broker, desk.node, desk.user, "POST", path, body=b'{"routing_key":"a /"}')
    answer = bindings.bind(request)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.headers) == (201, {"Location": "q/a%2B%252F"})


def test_each_queue_is_bound_to_the_default_exchange(desk: Desk) -> None:
    for path in ("/api/bindings", "/api/exchanges/%2F/amq.default/bindings/source", "/api/queues/%2F/q/bindings"):
        (binding,) = desk.get(path)[1]
        assert (binding["source"], binding["destination"], binding["properties_key"]) == ("", "q", "q")
    assert keys(desk.get(B + "amq.default/q/q")) == ["q"]
    assert desk.ask("DELETE", B + "amq.default/q/q/q") == (401, "Access refused.")
    assert desk.ask("POST", B + "amq.default/q/q", {"routing_key": "k"}) == (401, "Access refused.")


def test_an_exchange_is_bound_to_an_exchange(desk: Desk) -> None:
    assert desk.ask("POST", B + "x/e/amq.fanout", {"routing_key": "k"})[0] == 201
    for path in (
        B + "x/e/amq.fanout",
        "/api/exchanges/%2F/x/bindings/source",
        "/api/exchanges/%2F/amq.fanout/bindings/destination",
    ):
        (binding,) = desk.get(path)[1]
        assert (binding["destination"], binding["destination_type"]) == ("amq.fanout", "exchange")
    assert desk.ask("DELETE", B + "x/e/amq.fanout/k") == (204, None)


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("x/q/nope", {}, 404, "no queue 'nope' in vhost '/'"),
        ("nope/q/q", {}, 404, "no exchange 'nope' in vhost '/'"),
        ("x/e/nope", {}, 404, "no exchange 'nope' in vhost '/'"),
        ("x/z/q", {}, 404, "Not Found"),
        ("x/q/q", {"routing_key": []}, 400, ["not_string", "routing_key"]),
        ("x/q/q", {"routing_key": "k" * 256}, 400, "routing_key should be less than 255 bytes, actually was 256\n"),
        ("x/q/q", {"arguments": 5}, 400, "arguments should be a dictionary, actually was 5"),
        ("amq.headers/q/q", {"arguments": {"x-match": "zork"}}, 400, "Invalid x-match field value"),
    ],
)
def test_an_invalid_binding_is_refused(desk: Desk, path: str, body: object, status: int, reason: Any) -> None:
    told = desk.ask("POST", B + path, body)
    assert told[0] == status
    assert told[1] == reason or told[1].startswith(reason)


def test_bindings_between_missing_objects_are_an_empty_list(desk: Desk) -> None:
    assert desk.get(B + "nope/q/q") == desk.get(B + "x/q/nope") == desk.get(B + "x/e/nope") == (200, [])


def test_binding_requires_permissions_at_both_ends(desk: Desk) -> None:
    desk.be("management", configure="", write="^q$", read="^amq")
    assert desk.ask("POST", B + "x/q/q", {"routing_key": "k"}) == (401, "Access refused.")
    assert desk.ask("POST", B + "amq.fanout/q/q", {"routing_key": "k"})[0] == 201


@pytest.mark.parametrize(
    ("deleted", "path"),
    [
        ("queues/%2F/q", "/api/bindings/%2F"),
        ("queues/%2F/q", "/api/exchanges/%2F/x/bindings/source"),
        ("exchanges/%2F/x", "/api/queues/%2F/q/bindings"),
        ("exchanges/%2F/x", B + "x/q/q"),
    ],
)
def test_no_list_has_a_binding_whose_end_is_being_deleted(desk: Desk, deleted: str, path: str) -> None:
    vhost = desk.lab.vhost
    for number in range(3 * PORTION_STEPS):
        vhost.bind(vhost.exchanges["x"], vhost.queues["q"], f"k{number}", {})
    kind, _, name = deleted.split("/")
    if kind == "queues":
        vhost.remove_queue(vhost.queues[name])
    else:
        vhost.delete_exchange(name, if_unused=False)
    assert [row for row in desk.get(path)[1] if row["source"] == "x"] == []
    assert export(desk.broker, "/")["bindings"] == []
    desk.lab.drain()


@pytest.mark.parametrize("path", ["/api/queues/%2F/q", "/api/exchanges/%2F/x"])
def test_an_object_with_many_bindings_is_deleted_before_the_answer(desk: Desk, path: str) -> None:
    vhost = desk.lab.vhost
    queue, exchange = vhost.queues["q"], vhost.exchanges["x"]
    for number in range(3 * PORTION_STEPS):
        vhost.bind(exchange, queue, f"k{number}", {})
    assert desk.ask("DELETE", path) == (204, None)
    assert (queue.incoming, exchange.bindings, desk.broker.undrained) == ({}, {}, [])


@pytest.mark.parametrize("path", ["/api/queues/%2F/none~/bindings", B + "amq.default/q/none~"])
def test_a_queue_that_is_not_there_has_its_implicit_binding(desk: Desk, path: str) -> None:
    """Seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    binding = {"source": "", "vhost": "/", "destination": "none~", "destination_type": "queue", "routing_key": "none~"}
    assert desk.get(path) == (200, [{**binding, "arguments": {}, "properties_key": "none%7E"}])
    assert desk.get(B + "amq.default/q/none/none") == (404, "Not Found")
