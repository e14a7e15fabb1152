"""The comparable parts of exported definitions."""

from __future__ import annotations

import json
from typing import Any

SECTIONS = (
    *("users", "vhosts", "permissions", "topic_permissions", "global_parameters"),
    *("policies", "parameters", "queues", "exchanges", "bindings"),
)


def comparable(document: dict[str, Any], stem: str = "") -> dict[str, list[str]]:
    """Return the objects of each section whose vhost, user or name starts with `stem`, as sorted texts.

    Texts distinguish 2 from 2.0 and true from 1. Of vhosts only the names are compared. The type of a queue is compared
    if it is not classic, since only newer versions name that one.
    """
    found: dict[str, list[str]] = {}
    for section in SECTIONS:
        items = [item for item in document.get(section, []) if owner(section, item).startswith(stem)]
        if section == "queues":
            items = [_without_classic(item) for item in items]
        if section == "vhosts":
            items = [{"name": item["name"]} for item in items]
        found[section] = sorted(json.dumps(item, sort_keys=True, ensure_ascii=False) for item in items)
    return found


def comparable_vhost(document: dict[str, Any]) -> dict[str, list[str]]:
    """Return the same of an export of one vhost; 3.10 repeats its name in policies and parameters."""
    items = {section: document.get(section, []) for section in SECTIONS}
    return comparable(
        {
            section: [{key: value for key, value in item.items() if key != "vhost"} for item in found]
            for section, found in items.items()
        }
    )


def _without_classic(queue: dict[str, Any]) -> dict[str, Any]:
    """Return a queue without the field `type`, and without the argument for the type classic."""
    arguments = {key: value for key, value in queue["arguments"].items() if (key, value) != ("x-queue-type", "classic")}
    return {**{key: value for key, value in queue.items() if key != "type"}, "arguments": arguments}


def owner(section: str, item: dict[str, Any]) -> str:
    owner = item["name"] if section in ("users", "vhosts", "global_parameters") else item.get("vhost", "")
    return str(owner)
