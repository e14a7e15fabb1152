"""Asks a broker over HTTP, and makes its answers comparable."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any, NamedTuple

from compat.management_admin.requests import Ask

TIMEOUT_S = 20.0


class Said(NamedTuple):
    """What a broker answered: the status, and the value that the JSON is; text where it is none."""

    status: int
    value: Any


def ask(port: int, question: Ask) -> Said:
    """Ask over a connection of its own. Raises TimeoutError for a broker that says nothing."""
    if question.body is None:
        body = b""
    else:
        body = question.body if isinstance(question.body, bytes) else json.dumps(question.body).encode()
    credentials = base64.b64encode(f"{question.who}:{question.who}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request(question.method, f"/api/{question.path}", body, headers)
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    try:
        return Said(response.status, json.loads(text) if text else None)
    except ValueError:
        return Said(response.status, text.decode("utf-8", "replace"))


# What no two brokers have in common.
_OWN = {"password_hash", "time"}


def comparable(value: Any, node: str, question: Ask) -> Any:
    """An answer without what only one broker can say: salts, times and its name; lists without an order are sorted."""
    if isinstance(value, dict):
        return {
            key.replace(node, "NODE"): "…" if _is_own(key, item, question) else comparable(item, node, question)
            for key, item in value.items()
        }
    if isinstance(value, list):
        items = [comparable(item, node, question) for item in value]
        is_unordered = question.method == "GET" and all(_is_named(item) for item in items)
        return sorted(items, key=json.dumps) if is_unordered else items
    return value


def _is_own(key: str, value: Any, question: Ask) -> bool:
    return key in _OWN and value != "" and not question.path.startswith("users/hashed")


def _is_named(item: Any) -> bool:
    """Objects, tags and names come in any order, messages do not."""
    return isinstance(item, str) or (isinstance(item, dict) and "payload" not in item and "queue" not in item)
