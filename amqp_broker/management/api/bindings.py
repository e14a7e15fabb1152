"""Bindings, and the key by which a path names one of several between the same source and destination."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote_plus, unquote_plus

from msgspec import Struct

from amqp_broker.broker.exchanges.exchange import Binding
from amqp_broker.broker.operations import authorized
from amqp_broker.broker.operations.authorized import NamedBinding, stripped
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.management.documents.values import json_of_table
from amqp_broker.management.http.answers import NO_CONTENT, Answer, not_found
from amqp_broker.management.http.auth import MANAGEMENT
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.listing import ListQuery, listed, listed_rows
from amqp_broker.management.http.names import check_name, octets_of
from amqp_broker.management.http.request import DEFAULT_EXCHANGE_NAME, Request
from amqp_broker.management.http.shapes import Table, read_by, text

if TYPE_CHECKING:
    from amqp_broker.broker.exchanges.exchange import Destination
    from amqp_broker.broker.vhost import VHost

endpoints = Endpoints()


def _routing_key(name: str, value: Any) -> str:
    key = text(name, str(value) if isinstance(value, int) else value)
    check_name(name, key)
    return key


class NewBinding(Struct):
    """A routing key, and the arguments that some types of exchanges route by."""

    routing_key: Annotated[str, read_by(_routing_key)] = ""
    arguments: Table = {}


SORT: Final = ("vhost", "source", "type", "destination", "routing_key", "properties_key")
KINDS: Final = {"q": "queue", "e": "exchange"}
_HASH_BYTES: Final = 6


def _quoted(key: str) -> str:
    return quote_plus(octets_of(key)).replace("~", "%7E")


def properties_key(binding: Binding) -> str:
    """Return the quoted routing key, and after `~` a digest of the arguments; `~` alone if both are empty."""
    key = _quoted(binding.routing_key)
    if not binding.arguments:
        return key or "~"
    digest = hashlib.blake2b(binding.key[2], digest_size=_HASH_BYTES).digest()
    return f"{key}~{base64.urlsafe_b64encode(digest).decode()}"


def binding_row(binding: Binding) -> dict[str, Any]:
    """Return the row of a binding."""
    return {
        "source": binding.source.name,
        "vhost": binding.source.vhost,
        "destination": binding.destination.name,
        "destination_type": "queue" if isinstance(binding.destination, Queue) else "exchange",
        "routing_key": binding.routing_key,
        "arguments": json_of_table(binding.arguments),
        "properties_key": properties_key(binding),
    }


def _implicit_row(vhost: VHost, name: str) -> dict[str, Any]:
    """Return the row of the implicit binding of a queue that need not be there."""
    return {
        "source": "",
        "vhost": vhost.name,
        "destination": name,
        "destination_type": "queue",
        "routing_key": name,
        "arguments": {},
        "properties_key": _quoted(name) or "~",
    }


def implicit(vhost: VHost, queue: Queue) -> Binding:
    """Return the binding of a queue to the default exchange, by its name."""
    return Binding(vhost.default_exchange, queue, queue.name, {})


def _of_vhosts(vhosts: Iterable[VHost]) -> Iterator[Binding | Queue]:
    """Yield all bindings in some vhosts, as `_listed` takes them."""
    for vhost in vhosts:
        yield from vhost.queues.values()
        for exchange in vhost.exchanges.values():
            yield from exchange.bindings.values()


def _is_there(bound: Binding | Queue) -> bool:
    """Return whether a binding has not been removed; an implicit one is there as long as its queue."""
    if isinstance(bound, Queue):
        return not bound.is_deleted
    if not bound.source.name and isinstance(bound.destination, Queue):
        return not bound.destination.is_deleted
    return bound.is_in_force and bound.source.bindings.get(bound.key) is bound


def _row(bound: Binding | Queue) -> dict[str, Any]:
    if isinstance(bound, Queue):
        bound = implicit(bound.vhost, bound)
    return binding_row(bound)


def _listed(request: Request, bindings: Iterable[Binding | Queue]) -> Any:
    """Return a list of bindings. A queue stands for its implicit binding, which is made when its turn comes."""
    return listed(request, bindings, _row, is_there=_is_there, default_sort=SORT, has_pages=False)


@endpoints.on("GET /api/bindings", "GET /api/bindings/{vhost}", tag=MANAGEMENT, query=ListQuery)
def all_bindings(request: Request) -> Any:
    """List bindings, of one vhost or of all."""
    return _listed(request, _of_vhosts(request.vhosts))


@endpoints.on("GET /api/exchanges/{vhost}/{name}/bindings/source", tag=MANAGEMENT)
def of_source(request: Request) -> Any:
    """List the bindings from an exchange."""
    vhost, name = request.vhost, request.exchange_name()
    if not name:
        return _listed(request, vhost.queues.values())
    exchange = vhost.exchanges.get(name)
    return _listed(request, exchange.bindings.values() if exchange is not None else ())


@endpoints.on("GET /api/exchanges/{vhost}/{name}/bindings/destination", tag=MANAGEMENT)
def of_destination(request: Request) -> Any:
    """List the bindings to an exchange."""
    exchange = request.vhost.exchanges.get(request.exchange_name())
    return _listed(request, exchange.incoming if exchange is not None else ())


@endpoints.on("GET /api/queues/{vhost}/{name}/bindings", tag=MANAGEMENT)
def of_queue(request: Request) -> Any:
    """List the bindings to a queue; one that is not there has its implicit binding, as in RabbitMQ."""
    vhost, name = request.vhost, request.path["name"]
    queue = vhost.queues.get(name)
    if queue is None:
        return listed_rows(request, [_implicit_row(vhost, name)])
    return _listed(request, (queue, *queue.incoming))


# Between a source and a destination


def _destination(request: Request) -> tuple[str, str]:
    """Return the kind and the name of the destination in the path. Raise Refusal."""
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
        return [implicit(vhost, target)] if isinstance(target, Queue) else []
    return [one for one in target.incoming if one.source.name == source and one.is_in_force]


@endpoints.on("GET /api/bindings/{vhost}/e/{source}/{kind}/{destination}", tag=MANAGEMENT)
def between(request: Request) -> Any:
    """List the bindings from an exchange to a queue (kind `q`) or an exchange (kind `e`)."""
    vhost, (kind, name) = request.vhost, _destination(request)
    if kind == "queue" and name not in vhost.queues and not request.exchange_name("source"):
        return listed_rows(request, [_implicit_row(vhost, name)])
    return _listed(request, _between(request))


@endpoints.on(
    "POST /api/bindings/{vhost}/e/{source}/{kind}/{destination}", tag=MANAGEMENT, body=NewBinding, statuses=(201,)
)
def bind(request: Request) -> Any:
    """Bind a queue or an exchange to an exchange."""
    vhost, (kind, destination) = request.vhost, _destination(request)
    source, destination = stripped(request.exchange_name("source")), stripped(destination)
    given = request.read(NewBinding)
    named = NamedBinding(source, kind, destination, given.routing_key, given.arguments)
    binding = authorized.bind(request.user, vhost, named, None)
    location = f"{quote_plus(octets_of(destination))}/{quote_plus(properties_key(binding))}"
    return Answer(201, headers={"Location": location})


def _binding(request: Request) -> Binding:
    """Return the binding in the path. Raise Refusal."""
    wanted = request.path["properties"]
    key, mark, digest = wanted.partition("~")
    routing_key = unquote_plus(key, errors="surrogateescape")
    for binding in _between(request):
        if binding.routing_key != routing_key:
            continue
        own = properties_key(binding)
        if (not digest and not binding.arguments) or (mark and own.rpartition("~")[2] == digest and binding.arguments):
            return binding
    raise not_found()


@endpoints.on("GET /api/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}", tag=MANAGEMENT)
def one(request: Request) -> dict[str, Any]:
    """Return a binding by its `properties_key`."""
    return binding_row(_binding(request))


@endpoints.on("DELETE /api/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}", tag=MANAGEMENT)
def unbind(request: Request) -> Any:
    """Remove a binding by its `properties_key`."""
    binding, (kind, destination) = _binding(request), _destination(request)
    named = NamedBinding(binding.source.name, kind, destination, binding.routing_key, binding.arguments)
    authorized.unbind(request.user, request.vhost, named, None)
    return NO_CONTENT
