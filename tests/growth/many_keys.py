"""Rows: messages with many routing keys, whichever way they come to an exchange with many patterns."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

from tests.growth.messages import bound_to_patterns
from tests.growth.table import Play, Row
from tests.growth.verbs import Exchange, Queue, declared
from tests.growth.world import Client, World

ROWS: Final[list[Row]] = []
PATTERN: Final = "*.#.w{}.#.*.#"
# The last keys of a step may be short or long. A step of one more key takes hundreds of lines.
UNEVENNESS: Final = 5000


def keys(n: int) -> list[str]:
    return [".".join(["a"] * 20 + [str(number)]) for number in range(n)]


def with_copies(
    name: str, before: Callable[[Client, int], object], play: Callable[[World, Client, int], object]
) -> None:
    """Add a row with a message of n keys and an exchange of 30 patterns, without a queue that matches."""

    def playing(world: World, n: int) -> Play:
        client = world.client()
        before(client, n)
        yield
        play(world, client, n)

    ROWS.append(Row(f"a_message_of_many_keys_{name}", playing, 30, unevenness=UNEVENNESS))


def patterns(client: Client, n: int) -> None:
    bound_to_patterns(client, 30, PATTERN)


def delaying(client: Client) -> None:
    arguments: dict[str, Any] = {"x-delayed-type": "topic"}
    client.call(Exchange.Declare(exchange="d", exchange_type="x-delayed-message", arguments=arguments))
    declared(client, "q")
    for number in range(30):
        client.call(Queue.Bind(queue="q", exchange="d", routing_key=PATTERN.format(number)))


def publish_over_http(world: World, client: Client, n: int) -> None:
    body = {
        "properties": {"headers": {"CC": keys(n)}},
        "routing_key": "k",
        "payload": base64.b64encode(b"m").decode(),
        "payload_encoding": "base64",
    }
    assert world.ask("POST", "/api/exchanges/%2F/x/publish", body) == 200


def publish_undelayed(world: World, client: Client, n: int) -> None:
    client.publish("k", b"m", exchange="d", headers={"CC": keys(n)})


def delay(client: Client, n: int) -> None:
    delaying(client)
    client.publish("k", b"m", exchange="d", headers={"CC": keys(n), "x-delay": 1000})


def wait(world: World, client: Client, n: int) -> None:
    world.advance(2000)


def hold_before_patterns(client: Client, n: int) -> None:
    patterns(client, n)
    declared(client, "dying", **{"x-dead-letter-exchange": "x", "x-message-ttl": 1000})
    client.publish("dying", b"m", headers={"CC": keys(n)})


with_copies("comes_over_http", patterns, publish_over_http)
with_copies("comes_to_a_delayed_exchange", lambda client, n: delaying(client), publish_undelayed)
with_copies("is_due", delay, wait)
with_copies("dies", hold_before_patterns, wait)


def due_to_many(world: World, n: int) -> Play:
    client = world.client()
    arguments: dict[str, Any] = {"x-delayed-type": "fanout"}
    client.call(Exchange.Declare(exchange="d", exchange_type="x-delayed-message", arguments=arguments))
    declared(client, *(f"q{number}" for number in range(n)))
    for number in range(n):
        client.call(Queue.Bind(queue=f"q{number}", exchange="d"))
    for _ in range(40):
        client.publish("k", b"m", exchange="d", headers={"x-delay": 1000})
    yield
    world.advance(2000)
    assert world.vhost.queues["q0"].ready_count == 40


ROWS.append(Row("delayed_messages_to_many_queues_are_due", due_to_many, 50, unevenness=9000))
