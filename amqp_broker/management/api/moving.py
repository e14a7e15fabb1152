"""Moving messages from a queue to another queue or an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from amqp_broker.amqp.errors import AMQPError
from amqp_broker.broker.operations.moving import Choice, Moved, move_home, move_to_exchange, move_to_queue
from amqp_broker.broker.scheduling.portions import Steps
from amqp_broker.management.api.messages import channel_refusal, entered_vhost
from amqp_broker.management.http import shapes
from amqp_broker.management.http.answers import bad_request
from amqp_broker.management.http.auth import MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import DEFAULT_EXCHANGE_NAME, Request
from amqp_broker.management.http.shapes import Integer, Text, read_by

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue

endpoints = Endpoints()

# Messages that one request may choose.
POSITIONS_MAX: Final = 1000


class Destination(Struct):
    """A queue or an exchange, in the same vhost or in another one."""

    vhost: Text | None = None
    queue: Text | None = None
    exchange: Text | None = None


def _destination(name: str, value: Any) -> Destination:
    if not isinstance(value, dict) or ("queue" in value) is ("exchange" in value):
        raise bad_request(f"{name} must be an object with either queue or exchange")
    return shapes.read(Destination, value)


def _positions(name: str, value: Any) -> list[int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(one) is int for one in value):
        raise bad_request(f"{name} must be a list of integers")
    if len(value) > POSITIONS_MAX:
        raise bad_request(f"{name} must not have more than {POSITIONS_MAX} items")
    return value


_Number = Annotated[Integer | None, Meta(extra_json_schema={"type": "integer", "minimum": 0})]
_Positions = Annotated[
    list[int] | None, read_by(_positions, type="array", items={"type": "integer"}, maxItems=POSITIONS_MAX)
]


class Return(Struct):
    """The number of messages, or the positions that peeking shows; without both, all that are ready."""

    count: _Number = None
    positions: _Positions = None


class Move(Return, kw_only=True):
    """The destination, and the messages as for returning them."""

    destination: Annotated[Destination, read_by(_destination)]


@endpoints.on("POST /_broker/queues/{vhost}/{queue}/move", tag=MANAGEMENT, body=Move, statuses=(200,))
def move(request: Request) -> Steps[dict[str, Any]]:
    """Move ready messages to a queue or an exchange; return how many, and the reason of an early end."""
    vhost, broker, user = entered_vhost(request), request.broker, request.user
    given = request.read(Move)
    destination = given.destination
    target_vhost_name = vhost.name if destination.vhost is None else destination.vhost
    target_vhost = broker.vhosts.get(target_vhost_name)
    if target_vhost is None or not user.can_open(target_vhost_name):
        raise bad_request(f"vhost '{target_vhost_name}' does not exist, or you may not open it")
    try:
        user.require("read", vhost.name, "queue", request.path["queue"])
        source = vhost.queue(request.path["queue"])
        choice = _choice(given, source)
        if destination.queue is not None:
            user.require("write", target_vhost.name, "exchange", "")
            target = target_vhost.queue(destination.queue)
            if target is source:
                raise bad_request("destination must be another queue")
            moved = yield from move_to_queue(source, choice, target)
        else:
            name = destination.exchange or ""
            name = "" if name == DEFAULT_EXCHANGE_NAME else name
            user.require("write", target_vhost.name, "exchange", name)
            moved = yield from move_to_exchange(source, choice, target_vhost, target_vhost.exchange(name))
    except AMQPError as error:
        raise channel_refusal(error) from None
    return _answer(moved, source)


@endpoints.on("POST /_broker/queues/{vhost}/{queue}/return", tag=MANAGEMENT, body=Return, statuses=(200,))
def return_home(request: Request) -> Steps[dict[str, Any]]:
    """Move dead letters back to the queues that gave them up (`x-death`); return how many, and why it ended early."""
    vhost, user = entered_vhost(request), request.user
    given = request.read(Return)
    try:
        user.require("read", vhost.name, "queue", request.path["queue"])
        user.require("write", vhost.name, "exchange", "")
        source = vhost.queue(request.path["queue"])
        moved = yield from move_home(source, _choice(given, source))
    except AMQPError as error:
        raise channel_refusal(error) from None
    return _answer(moved, source)


def _choice(given: Return, source: Queue) -> Choice:
    if given.positions is not None:
        if given.count is not None:
            raise bad_request("give count or positions, not both")
        return frozenset(given.positions)
    count = source.ready_count if given.count is None else given.count
    if count < 0:
        raise bad_request("count must not be negative")
    return count


def _answer(moved: Moved, source: Queue) -> dict[str, Any]:
    return {"moved": moved.messages, "messages_ready": source.ready_count, "reason": moved.reason or None}
