"""Output of `amqp-broker trace`; tests/pipeline/test_lake_replay.py runs it with brokers."""

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


def test_a_plain_trace_is_a_firehose() -> None:
    answers = {
        "PUT /api/queues/v%2F/t": 201,
        "POST /api/bindings/v%2F/e/amq.rabbitmq.trace/q/t": 201,
        "PUT /_broker/trace/v%2F": 204,
        "GET /_broker/trace/v%2F": {"is_on": True, "extended": False},
        "GET /api/exchanges/v%2F/amq.rabbitmq.trace/bindings/source": [],
    }
    with canned(answers) as api:
        url = f"http://guest:guest@127.0.0.1:{api.place.port}"
        done = run("trace", "on", "--plain", "--vhost", "v/", "--queue", "t", "--max-length-bytes", "10", "--url", url)
        assert done.stdout == "The firehose of vhost 'v/' is on and goes to the stream 't'.\n"
        retention = {"x-queue-type": "stream", "x-max-age": "7D", "x-max-length-bytes": 10}
        assert [body for _, body in api.changes()] == [
            {"durable": True, "arguments": retention},
            {"routing_key": "#"},
            {"extended": False},
        ]
        done = run("trace", "status", "--vhost", "v/", "--url", url)
        assert (
            done.stdout == "The trace of vhost 'v/' is on, as RabbitMQ's firehose.\nNo queue is bound to the trace.\n"
        )


def test_a_refusal_of_the_broker_is_a_sentence() -> None:
    with canned({"PUT /api/queues/%2F/trace": (400, {"reason": "inequivalent arg"})}) as api:
        done = run("trace", "on", "--url", f"http://guest:guest@127.0.0.1:{api.place.port}")
    assert (done.returncode, done.stderr) == (65, "amqp-broker: inequivalent arg.\n")


def test_an_unknown_vhost_is_reported_in_a_sentence() -> None:
    with canned({"PUT /api/queues/nope/trace": (404, {"reason": "vhost_not_found"})}) as api:
        done = run("trace", "on", "--vhost", "nope", "--url", f"http://guest:guest@127.0.0.1:{api.place.port}")
    assert (done.returncode, done.stderr) == (65, "amqp-broker: there is no such vhost.\n")
