"""Output of `amqp-broker trace`; tests/pipeline/test_spark_replay.py runs it with brokers."""

from __future__ import annotations

import pytest

from amqp_broker.cli.own.trace import line_of
from tests.cli.canned import canned
from tests.cli.program import run


@pytest.mark.parametrize(
    ("queue", "line"),
    [
        ({"name": "t", "type": "stream", "messages": 1234}, "stream queue 't': 1,234 events"),
        ({"name": "t"}, "classic queue 't': 0 events"),
    ],
)
def test_a_queue_is_shown_in_one_line(queue: dict[str, object], line: str) -> None:
    assert line_of(queue) == line


def test_a_trace_is_started_and_shown_with_its_selection() -> None:
    answers = {
        "PUT /api/queues/v%2F/t": 201,
        "PUT /_broker/trace/v%2F": 204,
        "GET /_broker/trace/v%2F": {
            "is_on": True,
            "queue": "t",
            "events": 1234,
            "exchanges": ["", "x"],
            "queues": ["q"],
            "one_in": 5,
        },
        "GET /api/exchanges/v%2F/amq.rabbitmq.trace/bindings/source": [],
    }
    with canned(answers) as api:
        url = f"http://guest:guest@127.0.0.1:{api.place.port}"
        selection = ("--exchange", "amq.default", "--exchange", "x", "--of-queue", "q", "--one-in", "5")
        place = ("--vhost", "v/", "--url", url)
        done = run("trace", "on", *place, "--queue", "t", "--max-length-bytes", "10", *selection)
        assert done.stdout == "The trace of vhost 'v/' is on and goes to the stream 't'.\n"
        retention = {"x-queue-type": "stream", "x-max-age": "7D", "x-max-length-bytes": 10}
        assert [body for _, body in api.changes()] == [
            {"durable": True, "arguments": retention},
            {"queue": "t", "exchanges": ["", "x"], "queues": ["q"], "one_in": 5},
        ]
        assert run("trace", "status", *place).stdout == (
            "The trace of vhost 'v/' is on: 1,234 events in the stream 't'.\n"
            "It has one of 5 messages, messages to the exchanges 'amq.default', 'x', messages for the queues 'q'.\n"
            "The firehose of vhost 'v/' is on.\n"
            "No queue is bound to the firehose.\n"
        )


def test_the_firehose_of_rabbitmq_selects_nothing() -> None:
    with canned({"GET /_broker/node": 404}) as api:
        done = run("trace", "on", "--one-in", "2", "--url", f"http://guest:guest@127.0.0.1:{api.place.port}")
    assert (done.returncode, done.stderr) == (69, "amqp-broker: RabbitMQ's firehose cannot select messages.\n")


def test_the_firehose_of_rabbitmq_is_switched_without_a_loss_of_metadata() -> None:
    vhost = {"name": "/", "description": "shop", "tags": ["a"], "default_queue_type": "quorum", "tracing": False}
    answers = {
        "GET /_broker/node": 404,
        "PUT /api/queues/%2F/trace": 201,
        "POST /api/bindings/%2F/e/amq.rabbitmq.trace/q/trace": 201,
        "GET /api/vhosts/%2F": {**vhost, "cluster_state": {}},
        "PUT /api/vhosts/%2F": 204,
    }
    with canned(answers) as api:
        url = f"http://guest:guest@127.0.0.1:{api.place.port}"
        for word, is_on in (("on", True), ("off", False)):
            assert run("trace", word, "--url", url).returncode == 0
            kept = {"description": "shop", "tags": ["a"], "default_queue_type": "quorum"}
            assert api.changes()[-1] == ("PUT /api/vhosts/%2F", {**kept, "tracing": is_on})


def test_a_refusal_of_the_broker_is_a_sentence() -> None:
    with canned({"PUT /api/queues/%2F/trace": (400, {"reason": "inequivalent arg"})}) as api:
        done = run("trace", "on", "--url", f"http://guest:guest@127.0.0.1:{api.place.port}")
    assert (done.returncode, done.stderr) == (65, "amqp-broker: inequivalent arg.\n")


def test_an_unknown_vhost_is_reported_in_a_sentence() -> None:
    with canned({"PUT /api/queues/nope/trace": (404, {"reason": "vhost_not_found"})}) as api:
        done = run("trace", "on", "--vhost", "nope", "--url", f"http://guest:guest@127.0.0.1:{api.place.port}")
    assert (done.returncode, done.stderr) == (65, "amqp-broker: there is no such vhost.\n")


@pytest.mark.parametrize("node", [200, 404], ids=["amqp-broker", "rabbitmq"])
def test_an_unknown_vhost_is_named_as_such(node: int) -> None:
    with canned({"GET /_broker/node": node}) as api:
        for verb in ("off", "status"):
            done = run("trace", verb, "-p", "nope", "--url", f"http://guest:guest@127.0.0.1:{api.place.port}")
            assert (done.returncode, done.stderr) == (65, "amqp-broker: there is no such vhost.\n")
