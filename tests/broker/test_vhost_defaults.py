from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from amqp_broker.broker.broker import Broker
from amqp_broker.broker.vhost_defaults import VHostDefaults
from tests.peer import Lab


def broker(**defaults: Any) -> Broker:
    broker = Lab().broker
    written: dict[str, Any] = {name: json.dumps(value) for name, value in defaults.items()}
    broker.settings = replace(broker.settings, **written)
    broker.events.listen(VHostDefaults(broker).on_event)
    return broker


def limits(here: Broker, vhost: str) -> dict[str, int]:
    return here.add_vhost(vhost).limits.given


def policies(here: Broker, vhost: str) -> list[tuple[str, str, str, dict[str, Any]]]:
    found = here.add_vhost(vhost).operator_policies
    return [(policy.name, policy.pattern, policy.apply_to, dict(policy.definition)) for policy in found]


def test_a_new_vhost_gets_the_limits_of_the_first_name_whose_pattern_matches() -> None:
    here = broker(default_limits={"2": {"pattern": "^v", "max_queues": 2}, "10": {"pattern": "1$", "max_queues": 10}})
    assert limits(here, "v1") == {"max-queues": 10}
    assert limits(here, "v2") == {"max-queues": 2}
    assert limits(here, "w") == {}


def test_limits_without_a_pattern_are_those_of_every_new_vhost() -> None:
    here = broker(default_limits={"a": {"max_queues": 2, "max_connections": 3}})
    assert limits(here, "v") == {"max-queues": 2, "max-connections": 3}


def test_a_new_vhost_gets_all_operator_policies_whose_pattern_matches() -> None:
    here = broker(
        default_policies={
            "a": {"vhost_pattern": "^v", "queue_pattern": "^q", "apply_to": "classic_queues", "message_ttl": 5},
            "b": {"expires": 7},
            "c": {"vhost_pattern": "^w", "expires": 8},
        }
    )
    assert policies(here, "v") == [
        ("a", "^q", "classic_queues", {"message-ttl": 5}),
        ("b", ".*", "all", {"expires": 7}),
    ]


def test_a_vhost_that_exists_gets_no_defaults() -> None:
    here = broker(default_limits={"a": {"max_queues": 2}}, default_policies={"b": {"expires": 7}})
    assert here.vhosts["/"].limits.given == {}
    assert not list(here.vhosts["/"].operator_policies)
