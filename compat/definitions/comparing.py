"""What two exports have in common, so that they can be compared for equality."""

from __future__ import annotations

import json
from typing import Any

SECTIONS = (
    *("users", "vhosts", "permissions", "topic_permissions", "global_parameters"),
    *("policies", "parameters", "queues", "exchanges", "bindings"),
)


def comparable(document: dict[str, Any], stem: str = "") -> dict[str, list[str]]:
    """The objects of each section whose vhost, user or own name begins with `stem`, as sorted texts.

    Texts tell 2 from 2.0, and true from 1. Of vhosts 3.10 tells the names only, and nothing of a queue's type.
    """
    found: dict[str, list[str]] = {}
    for section in SECTIONS:
        items = [item for item in document.get(section, []) if _owner(section, item).startswith(stem)]
        if section == "queues":
            items = [{key: value for key, value in item.items() if key != "type"} for item in items]
        if section == "vhosts":
            items = [{"name": item["name"]} for item in items]
        found[section] = sorted(json.dumps(item, sort_keys=True, ensure_ascii=False) for item in items)
    return found


def comparable_vhost(document: dict[str, Any]) -> dict[str, list[str]]:
    """The same of an export of one vhost: 3.10 repeats its name in policies and parameters."""
    items = {section: document.get(section, []) for section in SECTIONS}
    return comparable(
        {
            section: [{key: value for key, value in item.items() if key != "vhost"} for item in found]
            for section, found in items.items()
        }
    )


def _owner(section: str, item: dict[str, Any]) -> str:
    owner = item["name"] if section in ("users", "vhosts", "global_parameters") else item.get("vhost", "")
    return str(owner)
