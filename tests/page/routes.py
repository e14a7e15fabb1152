"""Every page: lists and other pages of their own, and pages of one object."""

from __future__ import annotations

LISTS = (
    *(
        "connections",
        "channels",
        "exchanges",
        "queues",
        "users",
        "vhosts",
        "policies",
        "limits",
        "faults",
        "advice",
        "shovels",
    ),
    *("", "messages", "clock", "definitions", "demo", "features", "topology"),
)
OBJECTS = (
    *("connections/{connection}", "channels/{channel}"),
    *("exchanges/%2F/{name}", "queues/%2F/{name}", "users/{name}", "vhosts/{name}"),
)
