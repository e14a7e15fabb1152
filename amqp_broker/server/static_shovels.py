"""The static shovels of advanced.config: `{rabbitmq_shovel, [{shovels, [{Name, [{source, ...}, ...]}]}]}`.

The setting has the list as JSON, with a list for each tuple. A shovel has the form with `source` and `destination`, or
the old one with `sources` and `destinations`. Source: RabbitMQ, "Configuring Static Shovels"; live 3.10.8 and 4.3.6.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pamqp import base, commands

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.amqp.message import PROPERTIES, Properties
from amqp_broker.settings import plugins
from amqp_broker.settings.settings import Settings, SettingsError
from amqp_broker.shovel.amqp_client import call
from amqp_broker.shovel.shovel_definition import (
    AMQP_0_9_1,
    LOCAL,
    NEVER,
    PREFETCH,
    QUEUE_LENGTH,
    SHORTSTR_BYTES_MAX,
    Definition,
    End,
    Static,
    Uri,
    parse_uri,
    sent_prefetch,
)

logger = logging.getLogger("amqp_broker.shovel")

PLUGIN: Final = "rabbitmq_shovel"
# Seconds; that of a dynamic shovel is 1.
RECONNECT_DELAY_S: Final = 5
FOREIGN_PROTOCOLS: Final = ("amqp10", LOCAL)
ACK_MODES: Final = ("no_ack", "on_publish", "on_confirm")

_METHODS: Final[Mapping[str, type[base.Frame]]] = {
    "exchange.declare": commands.Exchange.Declare,
    "exchange.delete": commands.Exchange.Delete,
    "exchange.bind": commands.Exchange.Bind,
    "exchange.unbind": commands.Exchange.Unbind,
    "queue.declare": commands.Queue.Declare,
    "queue.bind": commands.Queue.Bind,
    "queue.unbind": commands.Queue.Unbind,
    "queue.delete": commands.Queue.Delete,
    "queue.purge": commands.Queue.Purge,
}
# Values of fields that a declaration leaves out, other than no bit, no text and no arguments.
_DEFAULTS: Final = {"exchange_type": "direct"}
_PUBLISH_FIELDS: Final = ("ticket", "exchange", "routing_key", "mandatory", "immediate")
_PROPERTIES: Final = {name: kind for name, _, kind in PROPERTIES}
# Types of fields in tables, by RabbitMQ's names; of integers, also the number of bits, below 0 with a sign.
_FIELD_TYPES: Final[Mapping[str, type[Any]]] = {"longstr": str, "double": float, "float": fields.Float32}
_INTEGER_TYPES: Final[Mapping[str, tuple[type[int], int]]] = {
    "signedint": (int, -32),
    "byte": (fields.Byte, -8),
    "unsignedbyte": (fields.UnsignedByte, 8),
    "short": (fields.Short, -16),
    "unsignedshort": (fields.UnsignedShort, 16),
    "unsignedint": (fields.UnsignedInt, 32),
    "long": (fields.Long, -64),
    "timestamp": (fields.Timestamp, 64),
}
_PROPERTY_BITS: Final = {"octet": 8, "timestamp": 64}


def configured(settings: Settings) -> dict[str, Definition]:
    """Return the shovels to start: none if their plugin is not enabled. Raise SettingsError."""
    if settings.plugins and PLUGIN not in plugins.enabled(settings.plugins):
        logger.warning("static shovels do not run, because the plugin %s is not enabled", PLUGIN)
        return {}
    return read(settings.static_shovels)


def read(text: str) -> dict[str, Definition]:
    """Return the shovels by name. Raise SettingsError, which RabbitMQ does not start with either."""
    found: dict[str, Definition] = {}
    for name, given in _pairs("shovels", _decoded(text)):
        if name in found:
            raise SettingsError(f"there are two static shovels '{name}'")
        try:
            shovel = _table(given)
            if protocol := _foreign_protocol(shovel):
                logger.warning("the static shovel '%s' does not run: its protocol is %s", name, protocol)
                continue
            found[name] = _definition(shovel)
        except (InvalidParameter, ValueError, TypeError) as error:
            raise SettingsError(f"the static shovel '{name}' is invalid: {error}") from None
    return found


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SettingsError(f"the static shovels are not JSON: {error}") from None


def _foreign_protocol(given: dict[str, Any]) -> str | None:
    """Return a protocol that RabbitMQ's static shovels have, and those of this broker have not."""
    protocols = [_table(given.get(side, [])).get("protocol") for side in ("source", "destination")]
    return next((protocol for protocol in protocols if protocol in FOREIGN_PROTOCOLS), None)


def _definition(given: dict[str, Any]) -> Definition:
    source, destination = _ends(given)
    address = _values("publish_fields", destination.get("publish_fields", []), _PUBLISH_FIELDS)
    for name in ("exchange", "routing_key"):
        _text(name, address.get(name, ""))
    if "queue" not in source:
        raise ValueError("the source has no queue")
    queue = _text("queue", source["queue"])
    return Definition(
        source=_end(source, queue=queue),
        destination=_end(destination, exchange=address.get("exchange"), routing_key=address.get("routing_key")),
        # Those of the old form have the defaults of RabbitMQ's application.
        ack_mode=_ack_mode(given.get("ack_mode", "no_ack" if "source" in given else "on_confirm")),
        prefetch=sent_prefetch(int(_number("prefetch_count", source.get("prefetch_count", PREFETCH)))),
        reconnect_delay_s=_delay(given.get("reconnect_delay", RECONNECT_DELAY_S)),
        delete_after=_delete_after(source.get("delete_after", NEVER)),
        consumer_arguments=_arguments(source.get("consumer_args", [])),
        publish_properties=_properties(destination.get("publish_properties", [])),
        adds_forward_headers=_is_true(destination.get("add_forward_headers", False)),
        adds_timestamp_header=_is_true(destination.get("add_timestamp_header", False)),
        static=Static(_declarations(source), _declarations(destination)),
    )


def _ends(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return source and destination, whichever form the shovel has."""
    if "source" not in given and "sources" in given:
        given = _modern(given)
    for side in ("source", "destination"):
        if side not in given:
            raise ValueError(f"it has no {side}")
    return _table(given["source"]), _table(given["destination"])


def _ack_mode(mode: Any) -> str:
    if mode not in ACK_MODES:
        raise ValueError(f"ack_mode is '{mode}', which is not one of {', '.join(ACK_MODES)}")
    return str(mode).replace("_", "-")


def _modern(old: dict[str, Any]) -> dict[str, Any]:
    """Return a shovel of the old form in the form with `source` and `destination`."""
    if "destinations" not in old:
        raise ValueError("it has no destinations")
    ends = [_table(old[name]) for name in ("sources", "destinations")]
    for end in ends:
        end["uris"] = end.get("brokers") or [uri for uri in [end.get("broker")] if uri]
    source, destination = ends
    source.pop("delete_after", None)
    source.update((key, old[key]) for key in ("queue", "prefetch_count", "delete_after") if key in old)
    names = ("publish_fields", "publish_properties", "add_forward_headers", "add_timestamp_header")
    destination.update((key, old[key]) for key in names if key in old)
    return {**old, "source": source, "destination": destination}


def _end(given: dict[str, Any], **place: Any) -> End:
    protocol = given.get("protocol", AMQP_0_9_1)
    if protocol != AMQP_0_9_1:
        raise ValueError(
            f"its protocol is '{protocol}', which is not one of {AMQP_0_9_1}, {', '.join(FOREIGN_PROTOCOLS)}"
        )
    uris = given.get("uris", [])
    if not isinstance(uris, list):
        raise ValueError(f"uris is '{uris}', which is not a list")
    values = {"queue": None, "exchange": None, "routing_key": None, **place}
    return End(tuple(_valid(uris)), arguments={}, protocol=AMQP_0_9_1, **values)


def _valid(uris: list[Any]) -> Iterator[Uri]:
    """Yield the valid ones: an end without any cannot connect, but RabbitMQ starts."""
    for uri in uris:
        try:
            yield parse_uri(str(uri))
        except InvalidParameter as error:
            logger.warning("a static shovel: %s", error)


# Terms


def _pairs(place: str, given: Any) -> Iterator[tuple[str, Any]]:
    """Yield the pairs of a property list, in which an atom `x` stands for `{x, true}`."""
    if not isinstance(given, list):
        raise SettingsError(f"{place} is not a list")
    for item in given:
        if isinstance(item, str):
            yield item, True
        elif isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
            yield item[0], item[1]
        else:
            raise SettingsError(f"{place} has '{item}', which is not a pair")


def _table(given: Any) -> dict[str, Any]:
    """Return a property list as a table; the first of equal keys counts."""
    return given if isinstance(given, dict) else dict(reversed(list(_pairs("a static shovel", given))))


def _values(place: str, given: Any, names: tuple[str, ...]) -> dict[str, Any]:
    values = _table(given)
    if others := sorted(values.keys() - set(names)):
        raise ValueError(f"{place} has {', '.join(others)}, which is not one of {', '.join(names)}")
    return values


def _number(name: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is '{value}', which is not a non-negative number")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value.encode("utf-8", "surrogatepass")) > SHORTSTR_BYTES_MAX:
        raise ValueError(f"{name} is '{value}', which is not a text of at most {SHORTSTR_BYTES_MAX} octets")
    return value


def _delay(value: Any) -> float:
    """Return the seconds; a negative delay stops no start of RabbitMQ."""
    return 0 if isinstance(value, (int, float)) and value < 0 else _number("reconnect_delay", value)


def _delete_after(value: Any) -> int | str:
    """Return a number of messages, or the length of the queue; other terms are no limit.

    With another atom, RabbitMQ fails at each message that it has moved, and moves it again.
    """
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count or value == QUEUE_LENGTH else NEVER


def _is_true(value: Any) -> bool:
    return value in (True, "true")


def _properties(given: Any) -> dict[str, Any]:
    values = _values("publish_properties", given, tuple(_PROPERTIES))
    found = {name: _property(name, value) for name, value in values.items()}
    _require_sendable("publish_properties", lambda: Properties(**found).encode())
    return found


def _property(name: str, value: Any) -> Any:
    if name == "headers":
        return _arguments(value)
    kind = _PROPERTIES[name]
    return _text(name, value) if kind == "shortstr" else _last_bits(int(_number(name, value)), _PROPERTY_BITS[kind])


def _last_bits(value: int, bits: int) -> int:
    """Return the last bits of an integer: RabbitMQ sends these of a larger one. Bits below 0 stand for a sign."""
    size = 1 << abs(bits)
    value %= size
    return value - size if bits < 0 and value >= size // 2 else value


def _arguments(given: Any) -> dict[str, Any]:
    """Return a table of `{Name, Type, Value}`."""
    if not isinstance(given, list):
        raise ValueError("a table is not a list")
    found = dict(_field(item) for item in given)
    _require_sendable("a table", lambda: fields.encode_table(found))
    return found


def _require_sendable(place: str, encode: Callable[[], bytes]) -> None:
    """Raise ValueError for a value that no frame can have."""
    # The shovel would fail with each message.
    try:
        encode()
    except (ValueError, AttributeError, OverflowError, struct.error) as error:
        raise ValueError(f"{place} cannot be sent: {error}") from None


def _field(item: Any) -> tuple[str, Any]:
    if not isinstance(item, list) or len(item) not in (2, 3):
        raise ValueError(f"a table has '{item}', which is not a name, a type and a value")
    # Arguments of consumers may be pairs without a type.
    return item[0], item[1] if len(item) == 2 else _typed(item[1], item[2])


def _typed(kind: str, value: Any) -> Any:
    if kind == "bool":
        return _is_true(value)
    if kind == "table":
        return _arguments(value)
    if kind == "array":
        return [_member(item) for item in value]
    if kind in _INTEGER_TYPES:
        make, bits = _INTEGER_TYPES[kind]
        return make(_last_bits(int(value), bits))
    if kind not in _FIELD_TYPES:
        raise ValueError(f"'{kind}' is not a type of fields")
    return _FIELD_TYPES[kind](value)


def _member(item: Any) -> Any:
    if not isinstance(item, list) or len(item) != 2:
        raise ValueError(f"an array has '{item}', which is not a type and a value")
    return _typed(item[0], item[1])


# Declarations


def _declarations(end: dict[str, Any]) -> tuple[base.Frame, ...]:
    return tuple(_method(name, given) for name, given in _pairs("declarations", end.get("declarations", [])))


def _method(name: str, given: Any) -> base.Frame:
    kind = _METHODS.get(name)
    if kind is None:
        raise ValueError(f"'{name}' is not a method that declares")
    values = {} if given is True else _table(given)
    if "type" in values and name == "exchange.declare":
        values["exchange_type"] = values.pop("type")
    known = kind.attributes()
    if others := sorted(values.keys() - set(known)):
        raise ValueError(f"'{name}' has no field {', '.join(others)}")
    return call(kind, **{field: _value(kind, field, values.get(field)) for field in known})


def _value(kind: type[base.Frame], field: str, value: Any) -> Any:
    """Return the value of a method's field; the answer is awaited, whatever `nowait` is."""
    if field == "arguments":
        return _arguments(value or [])
    if kind.amqp_type(field) == "bit":
        return field != "nowait" and _is_true(value)
    return 0 if field == "ticket" else _text(field, value or _DEFAULTS.get(field, ""))
