from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.broker.durability.journal import DefinitionKey
from amqp_broker.broker.operations.restoring import KINDS
from amqp_broker.store.contents import Contents, describe
from amqp_broker.store.environment import Environment
from amqp_broker.store.journal import NAMES, encode_key
from tests.store.stores import fill, put


def define(environment: Environment, key: DefinitionKey, value: dict[str, Any] | None) -> None:
    with environment.lmdb.begin(write=True) as txn:
        table = environment.tables["definitions"]
        if value is None:
            assert txn.delete(encode_key(key), db=table)
        else:
            put(txn, encode_key(key), fields.encode_table({**value, NAMES: list(key)}), table)


def problems_after(folder: Path, key: DefinitionKey, value: dict[str, Any] | None) -> list[str]:
    fill(folder)
    environment = Environment(folder)
    define(environment, key, value)
    problems = Contents(environment).problems
    environment.close()
    return problems


def test_all_is_declared_and_each_range_has_its_owner(tmp_path: Path) -> None:
    fill(tmp_path)
    environment = Environment(tmp_path)
    contents = Contents(environment)
    assert contents.problems == []
    assert contents.broker.vhosts["/"].queues.keys() == {"plain", "priority", "quorum", "emptied"}
    owners = [owner for owner, _ in contents.ranges.values()]
    assert owners.count("queue 'priority' in vhost '/'") == 4
    assert len(owners) == 4 + 32 + 2
    environment.close()


QUEUE = {"auto_delete": False, "arguments": fields.encode_table({})}


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (
            ("queue", "/", "plain"),
            None,
            "binding 'key' of exchange 'events' to queue 'plain' in vhost '/' cannot be declared: there is no 'plain'.",
        ),
        (
            ("parameter", "/", "shovel", "away"),
            {},
            "parameter 'away' of component 'shovel' in vhost '/' cannot be declared: there is no 'value'.",
        ),
        (("permission", "guest", "gone"), {}, "user 'guest' has permissions in vhost 'gone', which does not exist."),
        (
            ("permission", "nobody", "/"),
            {},
            "permission of user 'nobody' in vhost '/' cannot be declared: there is no 'nobody'.",
        ),
        (
            ("queue", "gone", "q"),
            {**QUEUE, "range": 1},
            "queue 'q' in vhost 'gone' cannot be declared: there is no 'gone'.",
        ),
        (
            ("exchange", "/", "e"),
            {"type": "x-unknown", "auto_delete": False, "internal": False, "range": None, "arguments": b"\0\0\0\0"},
            "exchange 'e' in vhost '/' cannot be declared: there is no 'x-unknown'.",
        ),
        (
            ("queue", "/", "later"),
            {**QUEUE, "range": 99},
            "queue 'later' in vhost '/' has a range that will be given away again.",
        ),
        (("planet", "mars"), {}, "a definition (b'planet') cannot be read."),
    ],
)
def test_a_definition_that_cannot_be_declared_is_a_problem(
    tmp_path: Path, key: DefinitionKey, value: dict[str, Any] | None, problem: str
) -> None:
    (found,) = problems_after(tmp_path, key, value)
    assert found == problem


def test_two_queues_with_the_same_messages_are_a_problem(tmp_path: Path) -> None:
    (found,) = problems_after(tmp_path, ("queue", "/", "twin"), {**QUEUE, "range": 1})
    # The order of the table decides which one is named first.
    assert re.sub("twin|plain", "…", found) == "queue '…' in vhost '/' shares its messages with queue '…' in vhost '/'."
    assert "twin" in found
    assert "plain" in found


def test_a_definition_that_is_no_table_is_a_problem(tmp_path: Path) -> None:
    fill(tmp_path)
    environment = Environment(tmp_path)
    with environment.lmdb.begin(write=True) as txn:
        put(txn, b"user:x", b"octets", environment.tables["definitions"])
    assert Contents(environment).problems == ["a definition (b'user') cannot be read."]
    environment.close()


def test_every_kind_of_definition_has_a_name_for_people() -> None:
    names = {describe((kind, *"abcdef")) for kind in KINDS}
    assert len(names) == len(KINDS)
    assert all("'a'" in name or "'b'" in name for name in names)
