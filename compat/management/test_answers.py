"""What both brokers tell of the same objects: the same keys, and the same values."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from compat.management.asking import Api, compare, neutral
from compat.management.conftest import Pair
from compat.management.differences import DIFFERENCES, listed_as

PATHS = (
    "overview",
    "overview?disable_stats=true",
    "nodes",
    "nodes/{node}",
    "nodes/{node}/memory",
    "extensions",
    "whoami",
    "connections",
    "connections?disable_stats=true",
    "connections/{connection}",
    "connections/{connection}/channels",
    "connections/username/guest",
    "vhosts/%2F/connections",
    "vhosts/%2F/channels",
    "channels",
    "channels/{connection}%20(1)",
    "channels/{connection}%20(2)",
    "consumers",
    "consumers/%2F",
    "exchanges",
    "exchanges/%2F",
    "exchanges/%2F/x1",
    "exchanges/%2F/amq.default",
    "exchanges/%2F/x1/bindings/source",
    "exchanges/%2F/x3/bindings/destination",
    "exchanges/%2F/amq.default/bindings/source",
    "queues",
    "queues/%2F",
    "queues/%2F/q1",
    "queues/%2F/q2",
    "queues/%2F/q3",
    "queues/%2F/qp",
    "queues/%2F/qq",
    "queues/%2F/qs",
    "queues/%2F/sp%20ace%2Fsl~%25",
    "queues/%2F/q1/bindings",
    "queues?disable_stats=true",
    "queues?disable_stats=true&enable_queue_totals=true",
    "bindings",
    "bindings/%2F",
    "bindings/%2F/e/x1/q/q1",
    "bindings/%2F/e/x1/q/q1/a.%2523",
    "bindings/%2F/e/x1/e/x3",
    "bindings/%2F/e/amq.default/q/q1",
    "bindings/%2F/e/amq.default/q/q1/q1",
    # Lists
    "queues?columns=name,messages,message_stats.publish",
    "queues?page=1&page_size=3&columns=name",
    "queues?page=2&page_size=3&columns=name&sort=name&sort_reverse=true",
    "queues?page=1&name=Q&columns=name",
    "queues?page=1&name=%5Eq%5B12%5D&use_regex=true&pagination=false&columns=name",
    "queues?page=1&name=zork",
    "queues?page=2&page_size=7",
    "queues?columns=name&sort=message_stats.publish&sort_reverse=true",
    "queues/%2F/q1?columns=name,message_stats.publish,messages",
    "overview?columns=node,product_name",
    "connections?page=1&columns=state",
    "exchanges?page=1&page_size=1&columns=name",
    "channels?sort=number&sort_reverse=true&columns=number",
)

seen: set[str] = set()


def filled(api: Api, path: str) -> str:
    """A path with the names that a broker gave to its node and to our connection."""
    node = api.get("overview")["node"]
    connection = api.get("connections")[0]["name"]
    return path.replace("{node}", quote(node, safe="")).replace("{connection}", quote(connection, safe=""))


@pytest.mark.parametrize("path", PATHS)
def test_both_tell_the_same(populated: Pair, path: str) -> None:
    theirs, ours = (
        neutral(api.get(filled(api, path)), api.get("overview")["node"]) for api in (populated.theirs, populated.ours)
    )
    differences = {difference: listed_as(difference) for difference in compare(theirs, ours, path)}
    seen.update(pattern for pattern in differences.values() if pattern is not None)
    assert [difference for difference, pattern in differences.items() if pattern is None] == []


def test_each_difference_that_is_listed_is_one(populated: Pair) -> None:
    assert sorted(set(DIFFERENCES) - seen) == []
