"""Parsing the JSON of definitions and snapshots, which must be encodable for AMQP."""

from __future__ import annotations

import json
from typing import Any

from amqp_broker.management.documents import nested_json
from amqp_broker.management.documents.definition import DefinitionsError


class NotJSON(DefinitionsError):
    """A document is not JSON; RabbitMQ's API calls this `failed_to_parse_json`."""


def parse(octets: bytes) -> Any:
    """Return the document in octets; no octets are an empty document. Raise NotJSON."""
    if not octets:
        return {}
    try:
        text = octets.decode("utf-8-sig")
        try:
            document = json.loads(text, parse_constant=nested_json.refuse_constant)
        except RecursionError:
            document = nested_json.read(text)
        if "\\u" in text:
            # A lone surrogate cannot be encoded for AMQP.
            nested_json.require_encodable(document)
    except UnicodeError:
        raise NotJSON("not JSON: the text is not valid UTF-8") from None
    except ValueError as error:
        raise NotJSON(f"not JSON: {error}") from None
    return document
