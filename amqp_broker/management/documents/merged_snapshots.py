"""Merges snapshots of vhosts. The result has the objects of all, and their messages one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from amqp_broker.management.documents.snapshots import SavedExchange, SavedQueue, SavedStream, Snapshot, SnapshotError

Saved = TypeVar("Saved", SavedQueue, SavedStream, SavedExchange)

# The fields that name an object. In all other fields, the snapshots must agree.
_IDENTITIES: Final = {
    "queues": ("name",),
    "exchanges": ("name",),
    "bindings": ("source", "destination", "destination_type", "routing_key", "arguments"),
    "policies": ("name",),
    "parameters": ("component", "name"),
}


def merged(snapshots: Sequence[Snapshot]) -> Snapshot:
    """Return one snapshot of all; facts about the vhost itself are those of the first.

    The messages of a queue are in the order of the snapshots, those that were delivered before in front. Raise
    SnapshotError for an object that two snapshots have differently, and for a stream with messages in two of them,
    because the offsets of both would be the same.
    """
    first = snapshots[0]
    definitions = dict(first.definitions)
    for snapshot in snapshots[1:]:
        for section, identity in _IDENTITIES.items():
            definitions[section] = _union(section, identity, definitions, snapshot.definitions)
        definitions["limits"] = _limits(definitions, snapshot.definitions)
    return Snapshot(
        format=first.format,
        definitions=definitions,
        queues=_joined([snapshot.queues for snapshot in snapshots], _queue),
        streams=_joined([snapshot.streams for snapshot in snapshots], _stream),
        exchanges=_joined([snapshot.exchanges for snapshot in snapshots], _exchange),
    )


def _union(
    section: str, identity: tuple[str, ...], before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in (*_objects(before, section), *_objects(after, section)):
        known = found.setdefault(repr([one.get(name) for name in identity]), one)
        if known != one:
            field = next(name for name in (*known, *one) if known.get(name) != one.get(name))
            differs = f"{field} {known.get(field)!r} and {one.get(field)!r}"
            raise SnapshotError(f"'{one.get('name')}' of the {section} has {differs}")
    return list(found.values())


def _objects(definitions: Mapping[str, Any], section: str) -> list[dict[str, Any]]:
    """Return the objects of a section. Raise SnapshotError."""
    objects = definitions.get(section, [])
    if not isinstance(objects, list) or not all(isinstance(one, dict) for one in objects):
        raise SnapshotError(f"the {section} of its definitions are no list of objects")
    return objects


def _limits(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    given = [definitions.get("limits", {}) for definitions in (before, after)]
    if not all(isinstance(one, dict) for one in given):
        raise SnapshotError("the limits of its definitions are no object")
    limits = dict(given[0])
    for name, value in given[1].items():
        if limits.setdefault(name, value) != value:
            raise SnapshotError(f"the limit {name} is {limits[name]} and {value}")
    return limits


def _joined(lists: Sequence[list[Saved]], join: Callable[[Saved, Saved], Saved]) -> list[Saved]:
    found: dict[str, Saved] = {}
    for of_snapshot in lists:
        for one in of_snapshot:
            found[one.name] = join(found[one.name], one) if one.name in found else one
    return list(found.values())


def _queue(one: SavedQueue, other: SavedQueue) -> SavedQueue:
    return SavedQueue(one.name, one.returned + other.returned, one.messages + other.messages, one.turn)


def _stream(one: SavedStream, other: SavedStream) -> SavedStream:
    if one.chunks and other.chunks:
        raise SnapshotError(f"stream '{one.name}' has messages in two snapshots")
    return one if one.chunks else other


def _exchange(one: SavedExchange, other: SavedExchange) -> SavedExchange:
    return SavedExchange(one.name, one.delayed + other.delayed)
