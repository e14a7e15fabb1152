"""The definition of a shovel: the value of a parameter of component `shovel`, validated and parsed.

Source: RabbitMQ, "Configuring Dynamic Shovels" and "URI Specification"; rabbit_shovel_parameters.erl.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote

from pamqp import base

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.amqp.message import PROPERTIES

ON_CONFIRM: Final = "on-confirm"
ON_PUBLISH: Final = "on-publish"
NO_ACK: Final = "no-ack"
NEVER: Final = "never"
QUEUE_LENGTH: Final = "queue-length"

AMQP_0_9_1: Final = "amqp091"
# An end in the broker itself, whatever the host of its URI is (RabbitMQ 4.2 and later).
LOCAL: Final = "local"

PREFETCH: Final = 1000
RECONNECT_DELAY_S: Final = 1
HEARTBEAT_S: Final = 10
PORTS: Final = {"amqp": 5672, "amqps": 5671}

SHORTSTR_BYTES_MAX: Final = 255
HEARTBEAT_S_MAX: Final = 65535
# Limits of the numeric properties.
_NUMBERS_MAX: Final = {"octet": 255, "timestamp": (1 << 64) - 1}

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_URI: Final = re.compile(
    r"(?P<scheme>amqps?)://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<host>\[[^\]]*\]|[^\[\]:/?#@]*)(?::(?P<port>[0-9]{1,5}))?(?:/(?P<vhost>[^/?#]*))?(?:\?(?P<query>[^#]*))?"
)


@dataclass(frozen=True)
class Uri:
    """The address of one end. Without a host it is this broker; `vhost` None means the shovel's own vhost.

    With `is_loopback` it is this broker whatever the host is, and the user logs in (the protocol `local`).
    """

    scheme: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    vhost: str | None
    query: Mapping[str, str]
    is_loopback: bool = False

    @property
    def is_local(self) -> bool:
        return self.is_loopback or not self.host

    @property
    def heartbeat_s(self) -> int:
        return int(self.query.get("heartbeat", HEARTBEAT_S))

    def __str__(self) -> str:
        """Return the URI without user and password: readers of a shovel's state need not know them."""
        port = "" if self.is_local or self.port == PORTS[self.scheme] else f":{self.port}"
        path = "" if self.vhost is None else "/" + quote(self.vhost, safe="")
        return f"{self.scheme}://{self.host}{port}{path}"


@dataclass(frozen=True)
class End:
    """A queue, or an exchange with a routing key; None means that of the message."""

    uris: tuple[Uri, ...]
    queue: str | None
    exchange: str | None
    routing_key: str | None
    arguments: fields.Table
    # The queue must exist; otherwise the shovel declares a missing one.
    is_predeclared: bool = False
    protocol: str = AMQP_0_9_1

    @property
    def shown_uri(self) -> str:
        """The first URI without credentials; RabbitMQ shows none of a local end."""
        return "" if self.protocol == LOCAL or not self.uris else str(self.uris[0])


class Static(NamedTuple):
    """The methods that declare at each end of a shovel of the configuration, instead of named queues."""

    at_source: tuple[base.Frame, ...]
    at_destination: tuple[base.Frame, ...]


@dataclass(frozen=True)
class Definition:
    """A parsed definition. `delete_after` is a number of messages, "never" or "queue-length"."""

    source: End
    destination: End
    ack_mode: str
    prefetch: int
    reconnect_delay_s: float
    delete_after: int | str
    consumer_arguments: fields.Table
    publish_properties: Mapping[str, Any]
    adds_forward_headers: bool
    adds_timestamp_header: bool
    # None for a dynamic shovel.
    static: Static | None = None

    @property
    def type(self) -> str:
        """RabbitMQ's word for what has defined the shovel."""
        return "dynamic" if self.static is None else "static"


def parse(name: str, value: Any) -> Definition:
    """Parse the definition of the shovel of this name. Raise InvalidParameter."""
    if not isinstance(value, Mapping):
        raise InvalidParameter(
            f"the definition of a shovel should be an object, actually was {fields.json_term(value)}"
        )
    given = {key: item for key, item in value.items() if item is not None}
    # A shovel of AMQP 1.0 has other keys: its protocol is named first.
    for key in ("src-protocol", "dest-protocol"):
        _is_protocol(key, given.get(key, AMQP_0_9_1))
    foreign = {name for key, names in _NOT_OF_LOCAL.items() if given.get(key, AMQP_0_9_1) == LOCAL for name in names}
    _has_no_others(name, given, set(_KEYS) - foreign)
    for key, item in given.items():
        _KEYS[key](key, item)
    for key in ("src-uri", "dest-uri"):
        if key not in given:
            raise InvalidParameter(f'Key "{key}" not found in {name}')
    if ("src-queue" in given) is ("src-exchange" in given):
        word = "Cannot specify 'src-exchange' and 'src-queue'" if "src-queue" in given else None
        raise InvalidParameter(word or "Must specify 'src-exchange' or 'src-queue'")
    if "dest-queue" in given and "dest-exchange" in given:
        raise InvalidParameter("Cannot specify 'dest-exchange' and 'dest-queue'")
    delete_after = given.get("src-delete-after", given.get("delete-after", NEVER))
    ack_mode = given.get("ack-mode", ON_CONFIRM)
    if ack_mode == NO_ACK and isinstance(delete_after, int):
        raise InvalidParameter("Cannot specify 'no-ack' and numerical 'delete-after'")
    return Definition(
        source=_end(given, "src"),
        destination=_end(given, "dest"),
        ack_mode=ack_mode,
        prefetch=sent_prefetch(given.get("src-prefetch-count", given.get("prefetch-count", PREFETCH))),
        reconnect_delay_s=int(given.get("reconnect-delay", RECONNECT_DELAY_S)),
        delete_after=delete_after,
        consumer_arguments=dict(given.get("src-consumer-args", {})),
        publish_properties=given.get("dest-publish-properties", given.get("publish-properties", {})),
        adds_forward_headers=given.get("dest-add-forward-headers", given.get("add-forward-headers", False)),
        adds_timestamp_header=given.get("dest-add-timestamp-header", given.get("add-timestamp-header", False)),
    )


def sent_prefetch(count: int) -> int:
    """Return the last 16 bits of a count, which RabbitMQ sends: of -1 these are 65535."""
    return count & 0xFFFF


def parse_uri(text: str) -> Uri:
    """Parse a URI. Raise InvalidParameter."""
    found = _URI.fullmatch(text)
    if found is None:
        raise InvalidParameter(f'"{without_credentials(text)}" not a valid URI')
    port = int(found["port"] or PORTS[found["scheme"]])
    if not 0 < port < 65536:
        raise InvalidParameter(f'"{without_credentials(text)}" not a valid URI: there is no port {port}')
    query = dict(parse_qsl(found["query"] or ""))
    heartbeat = query.get("heartbeat", "0")
    if re.fullmatch("[0-9]{1,5}", heartbeat) is None or int(heartbeat) > HEARTBEAT_S_MAX:
        raise InvalidParameter(f"{heartbeat} is not a valid heartbeat: seconds from 0 to {HEARTBEAT_S_MAX}")
    vhost = None if found["vhost"] is None else unquote(found["vhost"])
    _is_name("the vhost of a URI", vhost or "")
    has_user = found["user"] is not None
    return Uri(
        found["scheme"],
        found["host"],
        port,
        unquote(found["user"]) if has_user else "guest",
        unquote(found["password"] or "") if has_user else "guest",
        vhost,
        query,
    )


def _uri_of_shovel(text: str) -> Uri:
    """Parse a URI. Raise InvalidParameter, with RabbitMQ's term if the scheme is the cause."""
    try:
        return parse_uri(text)
    except InvalidParameter as refusal:
        scheme = _SCHEME.match(text)
        if scheme is None:
            cause = "{unable_to_parse_uri,no_scheme}"
        elif scheme[1] not in PORTS:
            cause = f'{{unexpected_uri_scheme,"{scheme[1]}"}}'
        else:
            raise
        raise InvalidParameter(f'{refusal}: {{{cause},"{without_credentials(text)}"}}') from None


def without_credentials(text: str) -> str:
    """Return a text, which may be an invalid URI, without credentials."""
    shown = re.sub(r"//.*@", "//", text, flags=re.DOTALL)
    return re.sub(r"(?<=password=)[^&]*", "***", shown)


def _end(given: Mapping[str, Any], side: str) -> End:
    given_uris, protocol = given[f"{side}-uri"], given.get(f"{side}-protocol", AMQP_0_9_1)
    uris = tuple(_uri_of_shovel(uri) for uri in ([given_uris] if isinstance(given_uris, str) else given_uris))
    return End(
        tuple(replace(uri, is_loopback=True) for uri in uris) if protocol == LOCAL else uris,
        given.get(f"{side}-queue"),
        given.get(f"{side}-exchange"),
        given.get(f"{side}-exchange-key", "" if f"{side}-exchange" in given and side == "src" else None),
        dict(given.get(f"{side}-queue-args", {})),
        given.get(f"{side}-predeclared", False),
        protocol,
    )


def _has_no_others(place: str, given: Mapping[str, Any], known: Set[str]) -> None:
    others = sorted(given.keys() - known)
    if others:
        terms = ",".join(f"{{{fields.json_term(key)},{fields.json_term(given[key])}}}" for key in others)
        raise InvalidParameter(f"Unrecognised terms [{terms}] in {place}")


def _is_text(key: str, value: Any) -> None:
    if not isinstance(value, str):
        raise InvalidParameter(f"{key} should be binary, actually was {fields.json_term(value)}")


def _is_name(key: str, value: Any) -> None:
    _is_text(key, value)
    if len(value.encode("utf-8", "surrogatepass")) > SHORTSTR_BYTES_MAX:
        raise InvalidParameter(f"{key} must not be longer than {SHORTSTR_BYTES_MAX} octets")


def _is_boolean(key: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InvalidParameter(f"{key} should be boolean, actually was {fields.json_term(value)}")


def _is_number(key: str, value: Any) -> None:
    _is_integer(key, value)
    if value < 0:
        raise InvalidParameter(f"{key} should be a non-negative number, actually was {value}")


def _is_integer(key: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidParameter(f"{key} should be a number, actually was {fields.json_term(value)}")


def _is_object(key: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise InvalidParameter(f"{key} should be an object, actually was {fields.json_term(value)}")


def _is_uri(key: str, value: Any) -> None:
    if isinstance(value, str):
        _uri_of_shovel(value)
    elif isinstance(value, Sequence) and value:
        for item in value:
            _is_text(key, item)
            _uri_of_shovel(item)
    elif isinstance(value, Sequence):
        raise InvalidParameter(f"{key} should be a URI or a list of them, actually was []")
    else:
        raise InvalidParameter(f"{key} should be list, actually was {fields.json_term(value)}")


def _is_protocol(key: str, value: Any) -> None:
    _is_text(key, value)
    if value == "amqp10":
        raise InvalidParameter(f'{key} is <<"amqp10">>, but AMQP 1.0 is not spoken here; use amqp091')
    if value not in (AMQP_0_9_1, LOCAL):
        protocols = '[<<"amqp091">>,<<"local">>,<<"amqp10">>]'
        raise InvalidParameter(f"{key} should be one of {protocols}, actually was {fields.json_term(value)}")


def _is_ack_mode(key: str, value: Any) -> None:
    _is_text(key, value)
    if value not in (NO_ACK, ON_PUBLISH, ON_CONFIRM):
        modes = fields.json_term([NO_ACK, ON_PUBLISH, ON_CONFIRM])
        raise InvalidParameter(f"{key} should be one of {modes}, actually was {fields.json_term(value)}")


def _is_delete_after(key: str, value: Any) -> None:
    if value not in (NEVER, QUEUE_LENGTH) and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise InvalidParameter(
            f'{key} should be a number greater than or equal to 0, "never" or "queue-length", '
            f"actually was {fields.json_term(value)}"
        )


def _is_properties(key: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise InvalidParameter(f"{key} not a list {fields.json_term(value)}")
    kinds = {name: kind for name, _, kind in PROPERTIES if name != "headers"}
    _has_no_others(key, value, kinds.keys())
    for name, item in value.items():
        if kinds[name] == "shortstr":
            _is_name(name, item)
            continue
        _is_number(name, item)
        if item > _NUMBERS_MAX[kinds[name]]:
            raise InvalidParameter(f"{name} must not be greater than {_NUMBERS_MAX[kinds[name]]}")


# Keys that an end of the protocol `local` does not have, as RabbitMQ 4.3.6 refuses them.
_NOT_OF_LOCAL: Final = {
    "src-protocol": ("src-prefetch-count", "prefetch-count", "delete-after"),
    "dest-protocol": ("dest-publish-properties", "publish-properties", "add-forward-headers", "add-timestamp-header"),
}
_KEYS: Final = {
    "src-uri": _is_uri,
    "src-protocol": _is_protocol,
    "src-queue": _is_name,
    "src-queue-args": _is_object,
    "src-exchange": _is_name,
    "src-exchange-key": _is_name,
    "src-consumer-args": _is_object,
    "src-prefetch-count": _is_integer,
    "src-predeclared": _is_boolean,
    "src-delete-after": _is_delete_after,
    "dest-uri": _is_uri,
    "dest-protocol": _is_protocol,
    "dest-predeclared": _is_boolean,
    "dest-queue": _is_name,
    "dest-queue-args": _is_object,
    "dest-exchange": _is_name,
    "dest-exchange-key": _is_name,
    "dest-publish-properties": _is_properties,
    "dest-add-forward-headers": _is_boolean,
    "dest-add-timestamp-header": _is_boolean,
    "ack-mode": _is_ack_mode,
    "reconnect-delay": _is_number,
    # Old names, from before source and destination had separate keys.
    "prefetch-count": _is_integer,
    "delete-after": _is_delete_after,
    "publish-properties": _is_properties,
    "add-forward-headers": _is_boolean,
    "add-timestamp-header": _is_boolean,
}
