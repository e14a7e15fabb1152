"""Texts and exit codes are those of RabbitMQ 3.10.8."""

from __future__ import annotations

import pytest

from tests.cli.canned import canned

ANSWERS = {"GET /api/queues/%2F/q": {"name": "q", "vhost": "/", "type": "classic"}}


@pytest.mark.parametrize(
    ("line", "output", "complaint", "exit_code"),
    [
        ("sync_queue q", "Synchronising queue 'q' in vhost '/' ...\n", "", 0),
        ("cancel_sync_queue q", "Stopping synchronising queue 'q' in vhost '/' ...\nnot_syncing\n", "", 0),
        ("sync_queue none", "Synchronising queue 'none' in vhost '/' ...\n", "Error:\nnot_found\n", 69),
    ],
)
def test_a_queue_of_3_13_has_no_mirrors_to_synchronise(line: str, output: str, complaint: str, exit_code: int) -> None:
    with canned(ANSWERS) as api:
        api.version = "3.13.7"
        done = api.run(f"rabbitmqctl {line}")
    assert (done.output, done.complaint, done.exit_code) == (output, complaint, exit_code)


@pytest.mark.parametrize("name", ["sync_queue", "cancel_sync_queue"])
def test_there_are_no_mirrors_since_4_0(name: str) -> None:
    with canned(ANSWERS) as api:
        done = api.run(f"rabbitmqctl -q {name} q")
    assert done.exit_code == 69
    assert "no mirrored queues since 4.0" in done.complaint
