from __future__ import annotations

import json

from tests.cli.canned import canned

RUNNING = {
    "node": "rabbit@localhost",
    "name": "copy",
    "vhost": "/",
    "type": "dynamic",
    "state": "running",
    "timestamp": "2026-11-27 3:31:45",
    "src_uri": "amqp://",
    "dest_uri": "",
    "src_protocol": "amqp091",
    "dest_protocol": "local",
    "src_queue": "a",
    "dest_queue": "b",
    "pending": 0,
    "forwarded": 3,
    "remaining": "unlimited",
    "remaining_unacked": "unlimited",
}
TERMINATED = {**RUNNING, "name": "lost", "state": "terminated", "reason": "404 NOT_FOUND"}
LISTED = "GET /api/shovels"


def test_the_status_of_shovels_is_a_table() -> None:
    with canned({LISTED: [RUNNING, TERMINATED]}) as api:
        header, running, lost = api.run("rabbitmqctl -q shovel_status").output.splitlines()
    assert header.split("\t")[:5] == ["name", "pending", "type", "state", "source"]
    assert dict(zip(header.split("\t"), running.split("\t"), strict=True)) == {
        "name": "copy",
        "pending": "0",
        "type": "dynamic",
        "state": "running",
        "source": "amqp://",
        "destination": "",
        "vhost": "/",
        "termination_reason": "",
        "destination_protocol": "local",
        "source_protocol": "amqp091",
        "last_changed": "2026-11-27 03:31:45",
        "source_queue": "a",
        "destination_queue": "b",
        "remaining": "unlimited",
        "remaining_unacked": "unlimited",
        "forwarded": "3",
    }
    assert dict(zip(header.split("\t"), lost.split("\t"), strict=True))["termination_reason"] == "404 NOT_FOUND"


def test_a_shovel_that_does_not_run_has_few_columns_in_json() -> None:
    with canned({LISTED: [TERMINATED]}) as api:
        (row,) = json.loads(api.run("rabbitmq-diagnostics shovel_status --formatter json").output)
    assert row == {
        "name": "lost",
        "type": "dynamic",
        "state": "terminated",
        "source": "",
        "destination": "",
        "vhost": "/",
        "termination_reason": "404 NOT_FOUND",
        "last_changed": "2026-11-27 03:31:45",
    }


def test_shovels_are_restarted_and_deleted() -> None:
    requests = ["DELETE /api/shovels/vhost/v/copy/restart", "DELETE /api/shovels/vhost/v/copy"]
    with canned(dict.fromkeys(requests, 204)) as api:
        assert api.run("rabbitmqctl restart_shovel copy -p v").exit_code == 0
        assert api.run("rabbitmqctl delete_shovel copy --vhost v --force").exit_code == 0
        assert [request for request, _ in api.changes()] == requests


def test_a_shovel_that_is_not_there_is_neither_restarted_nor_deleted() -> None:
    with canned({"GET /api/vhosts/%2F": {}}) as api:
        for command in ("restart_shovel", "delete_shovel"):
            done = api.run(f"rabbitmqctl {command} none")
            assert "Shovel with the given name was not found on the target node" in done.complaint
            assert done.exit_code == 69
