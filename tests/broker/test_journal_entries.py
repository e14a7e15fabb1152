"""Entries of the journal; `operations/test_restoring.py` reads them back."""

from __future__ import annotations

from amqp_broker.broker import journal_entries
from amqp_broker.broker.admin.policies import Policy
from tests.broker_parts import new_queue, new_vhost


def test_bindings_with_different_arguments_have_different_keys() -> None:
    vhost = new_vhost()
    queue, exchange = new_queue(vhost, "q"), vhost.exchanges["amq.headers"]
    bindings = [vhost.bind(exchange, queue, "k", arguments) for arguments in ({}, {"a": 1}, {"a": 2})]
    keys = {journal_entries.of_binding(binding)[0] for binding in bindings}
    assert len(keys) == 3
    assert {key[:6] for key in keys} == {("binding", "/", "amq.headers", "queue", "q", "k")}


def test_policies_and_operator_policies_have_different_keys() -> None:
    policy = Policy("p", ".*", {"max-length": 1})
    keys = [journal_entries.of_policy(kind, "/", policy)[0] for kind in ("policy", "operator_policy")]
    assert keys == [("policy", "/", "p"), ("operator_policy", "/", "p")]
