"""Shapes of bodies and queries: msgspec structs whose fields say how they are read.

A field with one of RabbitMQ's types below is read with its tolerance and refused in its words. Any other field is
converted by msgspec, and the description of its type says what it must be. The OpenAPI document and the page of the
HTTP API come from the same structs.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from amqp_broker.management.http.answers import bad_request, bad_term
from amqp_broker.management.http.json import to_table

S = TypeVar("S", bound=Struct)
Reader = Callable[[str, Any], Any]

# Digits of an integer that RabbitMQ's tolerance takes as text.
_DIGITS_MAX: Final = 20


def read_by(reader: Reader, **schema: Any) -> Meta:
    """Return the annotation of a field that `reader(name, value)` reads; `schema` adds to its JSON schema."""
    return Meta(extra={"reader": reader}, extra_json_schema=schema or None)


# RabbitMQ's types


def text(name: str, value: Any) -> str:
    """Return a string. Raise Refusal for anything else."""
    if not isinstance(value, str):
        raise bad_term("not_string", name)
    return value


def integer(name: str, value: Any) -> int:
    """Return an integer, also if it is written as text. Raise Refusal for anything else."""
    if isinstance(value, str):
        try:
            return int(value) if len(value) <= _DIGITS_MAX else int("")
        except ValueError:
            raise bad_term("not_integer", value) from None
    if not isinstance(value, int) or isinstance(value, bool):
        raise bad_term("not_integer", value)
    return value


def boolean(name: str, value: Any) -> bool:
    """Return True or False, also if it is written as text. Raise Refusal for anything else."""
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise bad_term("not_boolean", value)


def tags(name: str, value: Any) -> list[str]:
    """Return the tags in a list, or in a text with commas. Raise Refusal for anything else."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
        raise bad_request(f"{name} must be a string or a list of strings")
    return [tag.strip() for tag in value if tag.strip()]


def octets_of_base64(encoded: str) -> bytes:
    """Return the decoded octets. Raise Refusal for text that is not base64."""
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise bad_term("not_base64", encoded) from None


Text = Annotated[str, read_by(text)]
Integer = Annotated[int, read_by(integer)]
Flag = Annotated[bool, read_by(boolean)]
# A flag for which RabbitMQ takes null as no value.
OptionalFlag = Annotated[bool | None, read_by(lambda name, value: None if value is None else boolean(name, value))]
Tags = Annotated[list[str], read_by(tags, description="a list, or one text with commas")]
Table = Annotated[dict[str, Any], read_by(lambda name, value: to_table(value))]

# Our own types


def string(name: str, value: Any) -> str:
    """Return a string. Raise Refusal, in a sentence, for anything else."""
    if not isinstance(value, str):
        raise bad_request(f"{name} must be a string")
    return value


String = Annotated[str, read_by(string)]
Count = Annotated[int, Meta(ge=0, le=10**18 - 1, description="a non-negative whole number")]
# Any other text than "true" is false in a query, as it is for RabbitMQ.
Switch = Annotated[bool, read_by(lambda name, value: value == "true")]


def one_of(*words: str) -> Meta:
    """Return the annotation of a text that must be one of some words."""

    def read(name: str, value: Any) -> Any:
        if value not in words:
            raise bad_request(f"{name} must be {', '.join(words[:-1])} or {words[-1]}")
        return value

    return read_by(read, enum=list(words))


class Nothing(Struct, forbid_unknown_fields=True):
    """An empty object."""


class VHostQuery(Struct):
    """The name of a vhost; without it the request is about all vhosts."""

    vhost: str | None = None


# Reading


class Field(NamedTuple):
    """A field of a shape: `name` is the one in JSON; without a reader msgspec converts the value to `type`."""

    attribute: str
    name: str
    is_required: bool
    reader: Reader | None
    type: Any
    description: str


def read(shape: type[S], given: Mapping[str, Any], *, is_query: bool = False) -> S:
    """Return the struct that a body or a query contains. Raise Refusal if a field is missing, wrong or unknown."""
    fields = fields_of(shape)
    require_keys(given, *(field.name for field in fields if field.is_required))
    if shape.__struct_config__.forbid_unknown_fields:
        unknown = set(given) - {field.name for field in fields}
        if unknown:
            raise bad_request(f"unknown {'parameters' if is_query else 'fields'}: {', '.join(sorted(unknown))}")
    values = {field.attribute: _value(field, given[field.name], is_query) for field in fields if field.name in given}
    return shape(**values)


def require_keys(given: Mapping[str, Any], *names: str) -> None:
    """Raise Refusal, in RabbitMQ's words, unless a body has all of these keys."""
    missing = [name for name in names if name not in given]
    if missing:
        raise bad_request(f"[{','.join(f'{{key_missing,{name}}}' for name in missing)}]")


def _value(field: Field, value: Any, is_query: bool) -> Any:
    if field.reader is not None:
        return field.reader(field.name, value)
    try:
        # A query has numbers as text.
        return msgspec.convert(value, field.type, strict=not is_query)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        # The text of a query may be any octets.
        raise bad_request(f"{field.name} must be {field.description or error}") from None


@cache
def fields_of(shape: type[Struct]) -> tuple[Field, ...]:
    """Return the fields of a shape, in their order."""
    return tuple(
        Field(
            field.name,
            field.encode_name,
            field.required,
            next((meta.extra["reader"] for meta in _metas(field.type) if meta.extra), None),
            field.type,
            next((meta.description for meta in _metas(field.type) if meta.description), ""),
        )
        for field in msgspec.structs.fields(shape)
    )


def _metas(annotation: Any) -> list[Meta]:
    """Return the annotations of a type, and those of the parts of a union."""
    if get_origin(annotation) is Annotated:
        return [meta for meta in get_args(annotation)[1:] if isinstance(meta, Meta)]
    return [meta for part in get_args(annotation) for meta in _metas(part)]
