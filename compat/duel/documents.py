"""Strategies of definitions documents: exports of old and new versions, with mistakes."""

from __future__ import annotations

import copy
from typing import Any, Final

from hypothesis import strategies as st

from compat.duel.http_steps import USER, VHOST, Step
from compat.duel.odd_values import ABSENT, MISTAKES_MAX, ODD, Document, without_absent
from compat.management.http_asking import Ask

IMPORTS_MAX: Final = 2
ITEMS_MAX: Final = 2
NEW: Final = f"{VHOST}-new"
_BOOLEANS: Final = st.booleans()
_NAMES: Final = st.sampled_from(["a", "b", "é", "", "amq.mine"])
# Of SHA-256, the salt first.
_HASH: Final = "c2FsdMn5UdE+QVXFGfpJMX2fwGYc+4lFJNEGPnBxJn0y1pJb"
_VHOSTS: Final = st.sampled_from([VHOST, VHOST, NEW, NEW, "nowhere"])
_USERS: Final = st.sampled_from([USER, USER, "nobody"])

# The fields that every version exports, by section.
_FIELDS: Final[dict[str, dict[str, st.SearchStrategy[Any]]]] = {
    "users": {
        "name": st.just(USER),
        "password_hash": st.sampled_from([_HASH, _HASH, "", "!"]),
        "hashing_algorithm": st.sampled_from(
            ["rabbit_password_hashing_sha256", "rabbit_password_hashing_md5", "nonsense", ABSENT]
        ),
        "tags": st.sampled_from(["administrator", "", "management,policymaker", ["management"], [], ABSENT]),
    },
    "vhosts": {"name": st.sampled_from([NEW, NEW, VHOST])},
    "permissions": {
        "user": _USERS,
        "vhost": _VHOSTS,
        **{access: st.sampled_from(["", ".*", "("]) for access in ("configure", "write", "read")},
    },
    "topic_permissions": {
        "user": _USERS,
        "vhost": _VHOSTS,
        "exchange": st.sampled_from(["amq.topic", "a"]),
        "write": st.sampled_from(["", "^a", "("]),
        "read": st.sampled_from(["", ".*"]),
    },
    "global_parameters": {"name": st.just(USER), "value": st.sampled_from([1, "x", {}, {"a": [1, None]}, [], None])},
    "parameters": {
        "component": st.sampled_from(["vhost-limits", "operator_policy", "nonsense"]),
        "name": st.sampled_from(["limits", "p"]),
        "value": st.sampled_from(
            [
                {"max-queues": 5},
                {"max-connections": -1, "max-queues": 10},
                {"pattern": "", "definition": {"max-length": 1}, "apply-to": "queues", "priority": 0},
                {"pattern": "(", "definition": {"max-length": 1}},
                {"nonsense": 1},
                {},
                [],
                5,
            ]
        ),
        "vhost": _VHOSTS,
    },
    "policies": {
        "name": _NAMES,
        "pattern": st.sampled_from(["", "^a", "("]),
        "definition": st.sampled_from([{"max-length": 1}, {"expires": 100_000}, {"nonsense": 1}, {}, []]),
        "priority": st.sampled_from([0, 5, -1]),
        "apply-to": st.sampled_from(["all", "queues", "exchanges", "quorum_queues", "nonsense", ABSENT]),
        "vhost": _VHOSTS,
    },
    "queues": {
        "name": _NAMES,
        "durable": st.sampled_from([True, True, False]),
        "auto_delete": _BOOLEANS,
        "arguments": st.sampled_from(
            [
                {},
                [],
                {"x-queue-type": "quorum"},
                {"x-queue-type": "stream", "x-max-age": "1D"},
                {"x-queue-type": "nonsense"},
                {"x-max-length": 5, "x-queue-type": "classic"},
                {"x-max-length": "5"},
                {"x-max-priority": 1000},
                {"other": [1, {"b": 1.5}]},
            ]
        ),
        "vhost": _VHOSTS,
    },
    "exchanges": {
        "name": _NAMES,
        "type": st.sampled_from(["direct", "topic", "headers", "nonsense"]),
        "durable": _BOOLEANS,
        "auto_delete": _BOOLEANS,
        "internal": _BOOLEANS,
        "arguments": st.sampled_from([{}, [], {"alternate-exchange": "b"}, {"alternate-exchange": 5}]),
        "vhost": _VHOSTS,
    },
    "bindings": {
        "source": st.sampled_from(["a", "amq.fanout", "amq.headers", ""]),
        "destination": st.sampled_from(["a", "b", "", "amq.direct"]),
        "destination_type": st.sampled_from(["queue", "exchange"]),
        "routing_key": st.sampled_from(["", "a", "x" * 256]),
        "arguments": st.sampled_from([{}, [], {"x-match": "any"}, {"x-match": "nonsense"}]),
        "vhost": _VHOSTS,
    },
}
# Fields of later or former exports.
_MORE: Final[dict[str, dict[str, st.SearchStrategy[Any]]]] = {
    "users": {
        "administrator": st.sampled_from([True, False, "true"]),
        "password": st.sampled_from(["secret", ""]),
        "limits": st.sampled_from([{}, {"max-connections": 5}, {"nonsense": 1}, [], {"max-channels": "5"}]),
    },
    "vhosts": {
        "limits": st.sampled_from([[], [{"name": "max-queues", "value": 5}], {}]),
        "metadata": st.sampled_from(
            [
                {"description": "some", "tags": ["a"]},
                {"description": "some", "tags": [], "default_queue_type": "quorum"},
                {},
            ]
        ),
        "description": st.sampled_from(["beside", ""]),
        "tags": st.sampled_from([["beside"], [], "a,b"]),
        "default_queue_type": st.sampled_from(["quorum", "classic", "undefined", ""]),
        "tracing": _BOOLEANS,
    },
    "queues": {"type": st.sampled_from(["classic", "quorum"])},
}
_VHOST_SECTIONS: Final = ("exchanges", "queues", "bindings", "policies", "parameters")
_HEADS: Final[st.SearchStrategy[Document]] = st.sampled_from(
    [
        {"rabbit_version": "3.5.8"},
        {"rabbit_version": "3.6.16"},
        {"rabbit_version": "3.10.8", "rabbitmq_version": "3.10.8", "product_name": "RabbitMQ"},
        {"rabbitmq_version": "4.2.1", "rabbitmq_definition_format": "cluster", "explanation": "text"},
        {"rabbitmq_version": "4.3.6", "rabbitmq_definition_format": "single_virtual_host"},
        {"rabbit_version": None},
        {"rabbitmq_version": 5},
        {},
        {"bindings2": [1], "unknown": {}},
    ]
)
_NOT_DOCUMENTS: Final = st.sampled_from([b"", b"{", b"[]", b"null", b"5", b'"x"', b"\xff", b"[1]", b"{}"])


@st.composite
def _items(draw: st.DrawFn, section: str) -> Document:
    more = _MORE.get(section, {})
    item: Document = draw(st.fixed_dictionaries(_FIELDS[section], optional=more))
    return without_absent(item)


@st.composite
def documents(draw: st.DrawFn, sections: tuple[str, ...], has_vhost: bool) -> Document:
    """Return a document with some sections; without `has_vhost`, of one vhost, whose name objects may lack."""
    head: Document = draw(_HEADS)
    document = dict(head)
    for section in draw(st.lists(st.sampled_from(sections), min_size=1, max_size=4, unique=True)):
        # Of two objects of one name, RabbitMQ declares either last.
        document[section] = draw(
            st.lists(_items(section), max_size=ITEMS_MAX, unique_by=lambda item: str(item.get("name", item)))
        )
        for item in document[section] if not has_vhost else ():
            item.pop("vhost", None)
    for _ in range(draw(st.integers(0, MISTAKES_MAX))):
        _spoil(draw, document)
    return document


def _spoil(draw: st.DrawFn, document: Document) -> None:
    """Make a mistake in a document: an odd section, object or field, or an unknown field."""
    names = [section for section in document if section in _FIELDS]
    if not names:
        return
    section = draw(st.sampled_from(names))
    items = document[section]
    where = draw(st.sampled_from(["field", "field", "field", "field", "unknown", "object", "section"]))
    drawn = draw(ODD)
    odd = drawn if drawn is ABSENT else copy.deepcopy(drawn)
    objects = [item for item in items if isinstance(item, dict) and item] if isinstance(items, list) else []
    if where == "section" or not objects:
        document[section] = None if odd is ABSENT else odd
    elif where == "object":
        items[0] = None if odd is ABSENT else odd
    elif where == "unknown":
        objects[0]["unknown"] = None if odd is ABSENT else odd
    else:
        field = draw(st.sampled_from(sorted(objects[0])))
        if odd is ABSENT:
            del objects[0][field]
        else:
            objects[0][field] = odd


@st.composite
def _imports(draw: st.DrawFn) -> Step:
    """Return an import, of the broker or of a vhost."""
    if draw(_BOOLEANS):
        path, document = "definitions", documents(tuple(_FIELDS), True)
    else:
        has_vhost = draw(st.sampled_from([False, False, True]))
        path, document = f"definitions/{VHOST}", documents(_VHOST_SECTIONS, has_vhost)
    return Step(Ask("POST", path, draw(st.one_of(*[document] * 15, _NOT_DOCUMENTS))))


IMPORTS: Final = st.lists(_imports(), min_size=1, max_size=IMPORTS_MAX)
