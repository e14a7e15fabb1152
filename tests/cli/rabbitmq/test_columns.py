from __future__ import annotations

import pytest

from amqp_broker.cli.rabbitmq import columns
from amqp_broker.cli.rabbitmq.columns import Atom, Column, json_text, pid_of


@pytest.mark.parametrize(
    ("column", "item", "value"),
    [
        (columns.QUEUES["name"], {"name": "q"}, "q"),
        (columns.QUEUES["policy"], {"policy": None}, ""),
        (columns.QUEUES["memory"], {}, ""),
        (columns.CONSUMERS["queue_name"], {"queue": {"name": "q"}}, "q"),
        (columns.BINDINGS["source_kind"], {}, "exchange"),
        (columns.CONNECTIONS["protocol"], {"protocol": "AMQP 0-9-1"}, "{0,9,1}"),
        (columns.USERS["tags"], {"tags": "a,b"}, ["a", "b"]),
        (columns.USERS["tags"], {"tags": ["a"]}, ["a"]),
        (columns.POLICIES["definition"], {"definition": {"b": 1, "a": [2]}}, '{"a":[2],"b":1}'),
    ],
)
def test_a_column_is_read_from_the_answer_of_the_api(column: Column, item: dict[str, object], value: object) -> None:
    assert column.read(item, "n") == value


def test_a_connection_has_the_same_process_id_in_all_lists() -> None:
    connection = columns.CONNECTIONS["pid"].read({"name": "a -> b"}, "rabbit@h")
    assert connection == columns.CHANNELS["connection"].read({"connection_details": {"name": "a -> b"}}, "rabbit@h")
    assert isinstance(connection, Atom)
    assert pid_of("n", "a") != pid_of("n", "b")
    queue = columns.QUEUES["pid"]
    assert queue.read({"name": "q", "vhost": "/"}, "n") != queue.read({"name": "q", "vhost": "v"}, "n")


def test_json_is_written_as_rabbitmq_writes_it() -> None:
    assert json_text({"b": 1, "a": "ü"}) == '{"a":"ü","b":1}'
