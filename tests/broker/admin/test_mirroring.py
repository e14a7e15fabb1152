"""Policies for mirrors. The texts are those of RabbitMQ 3.10.8."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.admin.mirroring import MIRROR_KEYS, wrong_mirrors
from amqp_broker.broker.admin.policies import OPERATOR_KEYS, POLICY_VALUES, Policies, Policy
from amqp_broker.broker.vhost_policies import known_keys
from amqp_broker.settings.profiles import PROFILES
from tests.peer import Lab

NO_MODE = "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"
ALL = {"ha-mode": "all"}


@pytest.mark.parametrize(
    ("definition", "wrong"),
    [
        ({"max-length": 1}, ""),
        (ALL, ""),
        ({"ha-mode": "exactly", "ha-params": 2}, ""),
        ({"ha-mode": "nodes", "ha-params": ["a@b"]}, ""),
        ({**ALL, "ha-sync-mode": "automatic", "ha-sync-batch-size": 1}, ""),
        ({**ALL, "ha-promote-on-shutdown": "always", "ha-promote-on-failure": "when-synced"}, ""),
        ({"ha-params": 1}, NO_MODE),
        ({"ha-sync-mode": "automatic"}, NO_MODE),
        ({"ha-mode": "x"}, '<<"x">> is not a valid ha-mode value'),
        ({**ALL, "ha-params": 1}, 'ha-mode="all" does not take parameters'),
        ({"ha-mode": "exactly"}, 'ha-mode="exactly" takes an integer, none given'),
        ({"ha-mode": "exactly", "ha-params": 0}, 'ha-mode="exactly" takes an integer, 0 given'),
        ({"ha-mode": "exactly", "ha-params": "x"}, 'ha-mode="exactly" takes an integer, <<"x">> given'),
        ({"ha-mode": "exactly", "ha-params": 1.5}, 'ha-mode="exactly" takes an integer, 1.5 given'),
        ({"ha-mode": "nodes"}, 'ha-mode="nodes" takes a list, none given'),
        ({"ha-mode": "nodes", "ha-params": []}, 'ha-mode="nodes" list must be non-empty'),
        ({"ha-mode": "nodes", "ha-params": [1]}, 'ha-mode="nodes" takes a list of strings, [1] was not a string'),
        ({**ALL, "ha-sync-mode": 1}, 'ha-sync-mode must be "manual" or "automatic", got 1'),
        ({**ALL, "ha-sync-batch-size": 0}, "ha-sync-batch-size takes an integer greater than 0, 0 given"),
        (
            {**ALL, "ha-promote-on-shutdown": "x"},
            'ha-promote-on-shutdown must be "always" or "when-synced", got <<"x">>',
        ),
        ({**ALL, "ha-promote-on-failure": "x"}, 'ha-promote-on-failure must be "always" or "when-synced", got <<"x">>'),
        (
            {**ALL, "ha-sync-mode": "x", "ha-promote-on-failure": "x"},
            'ha-sync-mode must be "manual" or "automatic", got <<"x">>',
        ),
    ],
)
def test_the_keys_of_mirrors_are_checked_in_rabbitmqs_order(definition: dict[str, Any], wrong: str) -> None:
    assert wrong_mirrors(definition) == wrong


def test_a_number_of_thousands_of_digits_is_not_printed() -> None:
    assert wrong_mirrors({"ha-mode": "exactly", "ha-params": 10**5000}) == ""
    wrong = 'ha-mode="exactly" takes an integer, an integer of 16610 bits given'
    assert wrong_mirrors({"ha-mode": "exactly", "ha-params": -(10**5000)}) == wrong


@pytest.mark.parametrize("compat", PROFILES)
def test_policies_of_3_13_may_ask_for_mirrors(compat: str) -> None:
    known = known_keys(POLICY_VALUES, PROFILES[compat])
    assert (known >= MIRROR_KEYS) is (compat == "3.13")
    assert not MIRROR_KEYS & known_keys(OPERATOR_KEYS, PROFILES[compat])
    policies = Policies(known)
    policy = Policy("p", "^q", {**ALL, "max-length": 3}, 0, "all")
    if compat == "3.13":
        policies.put(policy)
        return
    with pytest.raises(InvalidParameter) as refusal:
        policies.put(policy)
    assert str(refusal.value) == '[{<<"ha-mode">>,<<"all">>}] are not recognised policy settings'


def test_mirrors_are_for_classic_queues() -> None:
    lab = Lab(compat="3.13")
    peer = lab.connect()
    lab.vhost.policies.set(Policy("p", ".*", ALL, 0, "all"))
    for kind in ("classic", "quorum", "stream"):
        peer.declare(kind, durable=True, arguments={"x-queue-type": kind})
    assert [name for name, queue in lab.vhost.queues.items() if queue.policy is not None] == ["classic"]
