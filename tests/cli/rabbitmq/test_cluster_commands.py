"""Texts and exit codes are those of a live RabbitMQ 4.3.6 that is alone."""

from __future__ import annotations

import pytest

from tests.cli.canned import NODE, canned


@pytest.mark.parametrize(
    ("line", "output", "complaint", "exit_code"),
    [
        ("rabbitmqctl autocomplete list_q", "list_queues\n", "", 0),
        ("rabbitmqctl autocomplete zzz", "", "", 0),
        ("rabbitmqctl -q forget_cluster_node a@b", "", "Error:\n{:not_a_cluster_node, ~c", 69),
        ("rabbitmqctl forget_cluster_node a@b --offline", "", "Error: this command requires the target node to be", 64),
        ("rabbitmqctl -q join_cluster a@b", "", "Error:\nthis broker is a single node, which joins no cluster\n", 69),
        ("rabbitmqctl -q rename_cluster_node a b", "", "", 0),
        ("rabbitmqctl update_cluster_nodes a", "", "Error: this command requires the 'rabbit' app to be stopped", 64),
        (
            "rabbitmq-upgrade -q has_reached_target_cluster_size",
            f"Target cluster size has been reached on node {NODE}\n",
            "",
            0,
        ),
        (
            "rabbitmq-upgrade -q post_upgrade",
            f'[{{"Node name", :{NODE}}}, {{"Number of quorum queues", 1}}, {{"Number of streams", 0}}]\n',
            "",
            0,
        ),
    ],
)
def test_commands_for_clusters_answer_as_a_node_that_is_alone(
    line: str, output: str, complaint: str, exit_code: int
) -> None:
    with canned({"GET /api/queues": [{"type": "quorum"}]}) as api:
        done = api.run(line)
    assert (done.output, done.exit_code) == (output, exit_code)
    assert done.complaint.startswith(complaint)
    assert bool(done.complaint) is bool(complaint)
