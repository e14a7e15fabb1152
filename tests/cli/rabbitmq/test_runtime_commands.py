"""Texts and exit codes are those of a live RabbitMQ 4.3.6, unless the command needs Erlang."""

from __future__ import annotations

import pytest

from tests.cli.canned import NODE, canned
from tests.cli.status_of_node import STATUS

POLICY = {"vhost": "/", "name": "p", "pattern": "^q", "apply-to": "all", "definition": {"max-length": 5}, "priority": 1}


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("discover_peers", f"[:{NODE}]"),
        ("certificates", "#{}"),
        ("check_if_any_deprecated_features_are_used", "Cluster reported no deprecated features in use"),
        (
            "check_if_metadata_store_is_initialized",
            f"Metadata store on node {NODE} has completed its initialization",
        ),
        (
            "check_for_quorum_queues_without_an_elected_leader x",
            f"Node {NODE} reported all quorum queue as having responsive leader replicas",
        ),
        ("list_node_auth_attempt_stats", f"Node {NODE} reported no authentication attempt stats"),
        ("list_channel_interceptors", ""),
    ],
)
def test_reports_of_a_single_node(line: str, output: str) -> None:
    answers = {
        "GET /_broker/status": STATUS,
        "GET /api/deprecated-features/used": [],
        "GET /api/auth/attempts/rabbit%40test": [],
    }
    with canned(answers) as api:
        assert api.run(f"rabbitmq-diagnostics -q {line}") == (f"{output}\n", "", 0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("erlang_version", "this broker has no Erlang virtual machine: it runs on Python"),
        ("log_tail", "enoent"),
        (
            "list_policies_with_classic_queue_mirroring",
            "{:undef, [{:rabbit_mirror_queue_misc, :list_policies_with_classic_queue_mirroring_for_cli, [], []}]}",
        ),
    ],
)
def test_a_command_that_cannot_work_says_why(line: str, reason: str) -> None:
    with canned() as api:
        assert api.run(f"rabbitmq-diagnostics -q {line}") == ("", f"Error:\n{reason}\n", 69)


def test_policies_that_match_are_listed_by_priority() -> None:
    answers = {
        "GET /api/queues/%2F/q": {"type": "classic"},
        "GET /api/policies/%2F": [
            POLICY,
            {**POLICY, "name": "first", "priority": 2, "apply-to": "queues"},
            {**POLICY, "name": "other", "pattern": "^x"},
            {**POLICY, "name": "exchanges", "apply-to": "exchanges"},
        ],
    }
    with canned(answers) as api:
        lines = api.run("rabbitmq-diagnostics -q list_policies_that_match q --formatter csv").output.splitlines()
        assert [line.split(",")[1] for line in lines] == ['"name"', '"first"', '"p"']
        done = api.run("rabbitmq-diagnostics -q list_policies_that_match none")
    assert done == ("", "Object (queue, stream, exchange, etc) was not found\n", 65)
