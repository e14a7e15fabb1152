from __future__ import annotations

import os
from typing import Any

import pytest

from amqp_broker.broker.broker import Broker
from amqp_broker.management.documents.checking import Check
from amqp_broker.settings.settings import Settings

BOOKED = {"vhosts": [{"name": "v"}]}


def faults(document: Any, vhost: str | None = None) -> list[str]:
    work = Check(Broker(Settings(), os.urandom), document, vhost)
    for _ in work.run():
        pass
    return work.faults


def test_each_fault_is_found_whether_the_reading_or_the_declaration_shows_it() -> None:
    document = {
        **BOOKED,
        "policies": [{"vhost": "v", "name": "ha", "pattern": "^", "definition": {"ha-mode": "all"}}],
        "queues": [5, {"vhost": "v", "name": "q", "arguments": {"x-max-length": "no"}}, {"vhost": "w", "name": "r"}],
        "users": 5,
    }
    assert faults(document) == [
        "users should be an array, actually was 5",
        "queue 1 should be an object, actually was 5",
        "precondition_failed: invalid arg 'x-max-length' for queue 'q' in vhost 'v': \"expected integer, got longstr\"",
        "queue 'r' in vhost 'w': Please create virtual host \"w\" prior to importing definitions",
        "policy 'ha' in vhost 'v': [{<<\"ha-mode\">>,<<\"all\">>}] are not recognised policy settings",
    ]


@pytest.mark.parametrize(
    ("section", "faulty", "dependent"),
    [
        (
            "users",
            {"name": "u"},
            {"permissions": [{"vhost": "v", "user": "u", "configure": "", "write": "", "read": ""}]},
        ),
        ("vhosts", {"name": "w", "tags": 5}, {"queues": [{"vhost": "w", "name": "q"}]}),
        (
            "queues",
            {"vhost": "v", "name": "q", "arguments": 5},
            {"bindings": [{"vhost": "v", "source": "amq.topic", "destination_type": "queue", "destination": "q"}]},
        ),
        (
            "exchanges",
            {"vhost": "v", "name": "e", "type": "none"},
            {"bindings": [{"vhost": "v", "source": "e", "destination_type": "exchange", "destination": "e"}]},
        ),
    ],
)
def test_an_object_that_refers_to_a_faulty_one_is_not_at_fault(
    section: str, faulty: dict[str, Any], dependent: dict[str, Any]
) -> None:
    document = {**BOOKED, **dependent, section: [*BOOKED.get(section, []), faulty]}
    (fault,) = faults(document)
    assert faulty["name"] in fault


def test_too_many_queues_for_the_limit_of_a_vhost_are_a_fault() -> None:
    broker = Broker(Settings(), os.urandom)
    broker.add_vhost("v").limits.replace({"max-queues": 0})
    work = Check(broker, {"queues": [{"name": "q"}]}, "v")
    assert [fault for fault in work.faults if "would exceed the limit of 0 queue(s)" in fault] == work.faults != []
