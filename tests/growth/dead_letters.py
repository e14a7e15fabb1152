"""Rows: messages that die, and the queues that their dead letters reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pamqp import commands

from tests.growth.messages import fanned_out
from tests.growth.table import Play, Row
from tests.growth.verbs import TYPES, Basic, declared, filled, unacked
from tests.growth.world import Client, World
from tests.peer import publish_bytes

ROWS: Final[list[Row]] = []
# Messages that die together.
DYING: Final = 40
TO_FANOUT: Final[dict[str, Any]] = {"x-dead-letter-exchange": "x"}
# A single dead letter goes to all of its targets in one turn. More than one may take several times as many lines.
UNEVENNESS: Final = 9000


def into_a_fanout(
    name: str, die: Callable[[World, Client], object], queue: dict[str, Any], before: Callable[[Client], object]
) -> None:
    """Add a row in which messages of a queue `q` die, whose dead letters go to n queues each."""

    def play(world: World, n: int) -> Play:
        client = world.client()
        fanned_out(client, n)
        declared(client, "q", **queue, **TO_FANOUT)
        before(client)
        yield
        die(world, client)
        world.settle()
        assert world.vhost.queues["q0"].ready_count >= DYING

    ROWS.append(Row(f"dead_letters_into_a_fanout_when_{name}", play, 50, unevenness=UNEVENNESS))


def fill(client: Client) -> None:
    filled(client, "q", DYING)


def take(client: Client) -> None:
    unacked(client, "q", DYING)


def fill_beyond_limit(world: World, client: Client) -> None:
    client.send_bytes(publish_bytes("q", b"m") * (DYING + 5))


def limit_by_policy(world: World, client: Client) -> None:
    world.ask("PUT", "/api/policies/%2F/p", {"pattern": "^q$", "definition": {"max-length": 0}})


def reject_all(world: World, client: Client) -> None:
    client.send(Basic.Nack(delivery_tag=0, multiple=True, requeue=False))


def reject_each(world: World, client: Client) -> None:
    client.send(*(Basic.Reject(delivery_tag=tag + 1, requeue=False) for tag in range(DYING)))


def reject_in_transaction(world: World, client: Client) -> None:
    client.send(commands.Tx.Select(), Basic.Nack(delivery_tag=0, multiple=True, requeue=False), commands.Tx.Commit())


def return_all(world: World, client: Client) -> None:
    client.send(Basic.Nack(delivery_tag=0, multiple=True, requeue=True))


def disconnect(world: World, client: Client) -> None:
    client.disconnect()


def wait(world: World, client: Client) -> None:
    world.advance(2000)


for kind in ("classic", "quorum", "priority"):
    arguments = TYPES[kind]
    into_a_fanout(f"{kind}_expires", wait, {**arguments, "x-message-ttl": 1000}, fill)
    into_a_fanout(f"{kind}_is_full", fill_beyond_limit, {**arguments, "x-max-length": 2}, lambda client: None)
    into_a_fanout(f"{kind}_is_limited", limit_by_policy, arguments, fill)
    into_a_fanout(f"{kind}_is_rejected", reject_all, arguments, take)
into_a_fanout("each_is_rejected", reject_each, {}, take)
into_a_fanout("a_transaction_rejects", reject_in_transaction, {}, take)
into_a_fanout("they_return_too_often", return_all, {**TYPES["quorum"], "x-delivery-limit": 0}, take)
into_a_fanout("their_connection_is_lost", disconnect, {**TYPES["quorum"], "x-delivery-limit": 0}, take)
AT_LEAST_ONCE: Final = {"x-overflow": "reject-publish", "x-dead-letter-strategy": "at-least-once"}
into_a_fanout("none_may_be_lost", wait, {**TYPES["quorum"], **AT_LEAST_ONCE, "x-message-ttl": 1000}, fill)
into_a_fanout(
    "they_are_refused",
    fill_beyond_limit,
    {"x-max-length": 2, "x-overflow": "reject-publish-dlx"},
    lambda client: None,
)
