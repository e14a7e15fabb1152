"""What a body says, checked: a Refusal names what is wrong, in RabbitMQ's words where it has any."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from amqp_broker.management.request import Refusal, Request, bad_request


def body_of(request: Request, *keys: str) -> dict[str, Any]:
    """The JSON object that was sent, which must have these keys."""
    body = request.json()
    missing = [key for key in keys if key not in body]
    if missing:
        raise bad_request(f"[{','.join(f'{{key_missing,{key}}}' for key in missing)}]")
    return body


def refused_term(*term: object) -> Refusal:
    """What RabbitMQ answers where an Erlang tuple is the reason: it becomes an array."""
    return Refusal(400, "bad_request", list(term))


def text(body: Mapping[str, Any], key: str, default: str = "") -> str:
    """A string; the default where there is none."""
    value = body.get(key, default)
    if not isinstance(value, str):
        raise refused_term("not_string", key)
    return value


def integer(body: Mapping[str, Any], key: str, default: int = 0) -> int:
    """A whole number, or one written as text."""
    value = body.get(key, default)
    if isinstance(value, str):
        try:
            return int(value) if len(value) <= 20 else int("")
        except ValueError:
            raise refused_term("not_integer", value) from None
    if not isinstance(value, int) or isinstance(value, bool):
        raise refused_term("not_integer", value)
    return value


def boolean(body: Mapping[str, Any], key: str) -> bool | None:
    """True, False, either as text, or None where nothing is said."""
    value = body.get(key)
    if value is None or isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise refused_term("not_boolean", value)


def tags(body: Mapping[str, Any], key: str = "tags") -> list[str]:
    """Tags as a list, or as text with commas between them."""
    value = body.get(key, "")
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        raise bad_request(f"{key} must be a string or a list of strings")
    return without_empty(value)


def without_empty(names: Iterable[str]) -> list[str]:
    return [name.strip() for name in names if name.strip()]


def octets(encoded: str) -> bytes:
    """What base64 stands for."""
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise refused_term("not_base64", encoded) from None
