"""Runs all command lines in order; their results are lines that do not depend on the run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

import pika

from compat.ctl.lines import questions
from compat.ctl.running import Outcome, Side
from compat.waiting import wait_until

# A row of a list in which all counts are settled.
COUNTED = (
    ("rabbitmqctl -s list_queues name messages consumers", "quorum\t3\t0\n"),
    ("rabbitmqctl -s list_queues name messages consumers", "q1\t0\t1\n"),
    ("rabbitmqctl -s list_connections channels", "1\n"),
    ("rabbitmqctl -s list_channels prefetch_count consumer_count messages_unacknowledged", "7\t1\t0\n"),
)
# Each of RabbitMQ's commands takes a second, and several on a busy machine.
COUNTING_S = 120.0


def play(side: Side, areas: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Return the result of each command line by question."""
    found = {}
    for area in areas:
        with busy(side) if area == "lists" else nullcontext() as connection:
            for question, line in questions(area).items():
                found[question] = told(area, side.run(line), side.node)
                if connection:
                    # RabbitMQ closes a connection without heartbeats after two minutes.
                    connection.process_data_events()
    return found


def told(area: str, outcome: Outcome, node: str) -> list[str]:
    """Return a command's output, its errors with the prefix `! `, and its exit code."""
    output, complaint = (_lines(text, node) for text in (outcome.output, outcome.complaint))
    if area == "nowhere":
        # The rest is specific to Erlang or to amqp-broker.
        complaint = complaint[:1]
    return [*output, *(f"! {line}" for line in complaint), f"exit code {outcome.exit_code}"]


def _lines(text: str, node: str) -> list[str]:
    text = text.replace(node, "NODE")
    # The time in lines of Erlang's log, which some errors contain; processes and ports.
    text = re.sub(r"^\n\d\d:\d\d:.*\n", "", text)
    # A line of a helper process of Erlang, if Erlang ends before it (EPIPE), as by the timeout of a command.
    text = re.sub(r"^erl_child_setup: failed with error 32 on line \d+\r?\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"<[\w@.]+\.\d+\.\d+>", "PID", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    *lines, rest = text.split("\n")
    return [*lines, f"{rest} (no end of line)"] if rest else lines


@contextmanager
def busy(side: Side) -> Iterator[pika.BlockingConnection]:
    """Provide objects of every kind that the tools can list, and the connection that uses them."""
    side.run("rabbitmqctl add_vhost empty")
    side.run('rabbitmqctl set_policy p ^q1 \'{"max-length":50,"expires":100000}\' --apply-to queues')
    connection = pika.BlockingConnection(pika.URLParameters(side.url))
    channel = connection.channel()
    channel.queue_declare("q1", durable=True, arguments={"x-max-length": 5})
    channel.queue_declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    channel.exchange_declare("e1", "topic", durable=True, arguments={"alternate-exchange": "amq.fanout"})
    channel.queue_bind("q1", "e1", "a.#")
    channel.queue_bind("quorum", "e1", "b\tc", {"k": 1})
    channel.exchange_bind("amq.fanout", "e1", "z")
    for _ in range(3):
        channel.basic_publish("", "quorum", b"x")
    channel.basic_qos(prefetch_count=7)
    channel.basic_consume("q1", lambda *_: None, consumer_tag="ct")
    # The answer comes once the messages are in the queue.
    channel.queue_declare("quorum", passive=True)
    # RabbitMQ counts the messages of a quorum queue every five seconds, and its HTTP API counts everything so.
    wait_until(lambda: is_counted(side), COUNTING_S, connection.process_data_events)
    try:
        yield connection
    finally:
        connection.close()


def is_counted(side: Side) -> bool:
    return all(row in side.run(line).output for line, row in COUNTED)
