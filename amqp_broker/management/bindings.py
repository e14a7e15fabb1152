"""Bindings, and the key of their properties by which a path names one of several between the same two ends."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, unquote_plus

from amqp_broker.broker import topology
from amqp_broker.broker.exchange import Binding
from amqp_broker.broker.queue import Queue
from amqp_broker.broker.topology import stripped
from amqp_broker.management import json
from amqp_broker.management.access import MANAGEMENT
from amqp_broker.management.body import text
from amqp_broker.management.listing import listed
from amqp_broker.management.names import check_name, octets_of
from amqp_broker.management.request import DEFAULT_EXCHANGE_NAME, NO_CONTENT, Answer, Request, Resource, not_found
from amqp_broker.management.values import json_of

if TYPE_CHECKING:
    from amqp_broker.broker.exchange import Destination
    from amqp_broker.broker.vhost import VHost

SORT: Final = ("vhost", "source", "type", "destination", "routing_key", "properties_key")
KINDS: Final = {"q": "queue", "e": "exchange"}
_HASH_BYTES: Final = 6


def properties_key(binding: Binding) -> str:
    """`~` for an empty routing key without arguments, the key quoted, and after `~` what stands for arguments."""
    key = quote_plus(octets_of(binding.routing_key)).replace("~", "%7E")
    if not binding.arguments:
        return key or "~"
    digest = hashlib.blake2b(binding.key[2], digest_size=_HASH_BYTES).digest()
    return f"{key}~{base64.urlsafe_b64encode(digest).decode()}"


def binding_row(binding: Binding) -> dict[str, Any]:
    """A binding as lists have it."""
    return {
        "source": binding.source.name,
        "vhost": binding.source.vhost,
        "destination": binding.destination.name,
        "destination_type": "queue" if isinstance(binding.destination, Queue) else "exchange",
        "routing_key": binding.routing_key,
        "arguments": json_of(binding.arguments),
        "properties_key": properties_key(binding),
    }


def implicit(queue: Queue) -> Binding:
    """The binding that each queue has to the default exchange, by its name."""
    return Binding(queue.vhost.default_exchange, queue, queue.name, {})


def of_vhosts(vhosts: Iterable[VHost]) -> Iterator[Binding]:
    for vhost in vhosts:
        yield from map(implicit, vhost.queues.values())
        for exchange in vhost.exchanges.values():
            yield from exchange.bindings.values()


def _reply(request: Request, bindings: Iterable[Binding]) -> Any:
    """RabbitMQ knows no pages of bindings."""
    request.query = {name: value for name, value in request.query.items() if name != "page"}
    return listed(request, bindings, binding_row, default_sort=SORT)


def all_bindings(request: Request) -> Any:
    return _reply(request, of_vhosts(request.vhosts))


def of_source(request: Request) -> Any:
    vhost, name = request.vhost, request.exchange_name()
    if not name:
        return _reply(request, map(implicit, vhost.queues.values()))
    exchange = vhost.exchanges.get(name)
    return _reply(request, exchange.bindings.values() if exchange is not None else ())


def of_destination(request: Request) -> Any:
    exchange = request.vhost.exchanges.get(request.exchange_name())
    return _reply(request, exchange.incoming if exchange is not None else ())


def of_queue(request: Request) -> Any:
    queue = request.vhost.queues.get(request.path["name"])
    return _reply(request, (implicit(queue), *queue.incoming) if queue is not None else ())


# Between two ends


def _destination(request: Request) -> tuple[str, str]:
    """Kind and name of the destination in the path. Raises Refusal."""
    kind = KINDS.get(request.path["kind"])
    if kind is None:
        raise not_found()
    name = request.path["destination"]
    return kind, "" if kind == "exchange" and name == DEFAULT_EXCHANGE_NAME else name


def _between(request: Request) -> list[Binding]:
    vhost, (kind, name) = request.vhost, _destination(request)
    source = request.exchange_name("source")
    target: Destination | None = vhost.queues.get(name) if kind == "queue" else vhost.exchanges.get(name)
    if target is None:
        return []
    if not source:
        return [implicit(target)] if isinstance(target, Queue) else []
    return [binding for binding in target.incoming if binding.source.name == source]


def between(request: Request) -> Any:
    return _reply(request, _between(request))


def bind(request: Request) -> Any:
    vhost, (kind, destination) = request.vhost, _destination(request)
    source, destination, body = stripped(request.exchange_name("source")), stripped(destination), request.json()
    routing_key = body.get("routing_key", "")
    if isinstance(routing_key, int):
        routing_key = str(routing_key)
    routing_key = text({"routing_key": routing_key}, "routing_key")
    check_name("routing_key", routing_key)
    arguments = json.to_table(body.get("arguments"))
    binding = topology.bind(request.user, vhost, source, kind, destination, routing_key, arguments, None)
    location = f"{quote_plus(octets_of(destination))}/{quote_plus(properties_key(binding))}"
    return Answer(201, headers={"Location": location})


def _named(request: Request) -> Binding:
    """The binding in the path. Raises Refusal."""
    wanted = request.path["properties"]
    key, mark, digest = wanted.partition("~")
    routing_key = unquote_plus(key, errors="surrogateescape")
    for binding in _between(request):
        if binding.routing_key != routing_key:
            continue
        told = properties_key(binding)
        if (not digest and not binding.arguments) or (mark and told.rpartition("~")[2] == digest and binding.arguments):
            return binding
    raise not_found()


def one(request: Request) -> dict[str, Any]:
    return binding_row(_named(request))


def unbind(request: Request) -> Any:
    binding, (kind, destination) = _named(request), _destination(request)
    topology.unbind(
        request.user,
        request.vhost,
        binding.source.name,
        kind,
        destination,
        binding.routing_key,
        binding.arguments,
        None,
    )
    return NO_CONTENT


RESOURCES = (
    Resource("/api/bindings", MANAGEMENT, {"GET": all_bindings}),
    Resource("/api/bindings/{vhost}", MANAGEMENT, {"GET": all_bindings}),
    Resource("/api/bindings/{vhost}/e/{source}/{kind}/{destination}", MANAGEMENT, {"GET": between, "POST": bind}),
    Resource(
        "/api/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}",
        MANAGEMENT,
        {"GET": one, "DELETE": unbind},
    ),
    Resource("/api/exchanges/{vhost}/{name}/bindings/source", MANAGEMENT, {"GET": of_source}),
    Resource("/api/exchanges/{vhost}/{name}/bindings/destination", MANAGEMENT, {"GET": of_destination}),
    Resource("/api/queues/{vhost}/{name}/bindings", MANAGEMENT, {"GET": of_queue}),
)
