from __future__ import annotations

from tests.cli.canned import NODE, canned

QUORUM = {"name": "q", "type": "quorum"}


def test_the_leader_of_a_quorum_queue_is_the_single_node() -> None:
    with canned({"GET /api/queues/%2F/q": QUORUM}) as api:
        done = api.run("rabbitmq-queues quorum_status q --formatter csv")
    assert done == (f'"Node Name","Raft State","Term"\n"{NODE}","leader","1"\n', "", 0)


def test_the_status_requires_a_queue_of_that_kind() -> None:
    with canned({"GET /api/queues/%2F/q": {"type": "classic"}}) as api:
        assert api.run("rabbitmq-queues quorum_status q").complaint == (
            "Error:\nCannot get quorum status of a classic queue\n"
        )
        assert api.run("rabbitmq-queues quorum_status none")[1:] == ("Error:\nnot_found\n", 69)


def test_rebalancing_a_single_node_moves_nothing() -> None:
    with canned({"GET /api/queues": [QUORUM, {"type": "classic"}]}) as api:
        assert api.run("rabbitmq-queues -s rebalance all --formatter table").output == f"{NODE}\t1\t0\n"


def test_no_member_can_be_added_to_a_single_node() -> None:
    with canned() as api:
        assert api.run("rabbitmq-queues add_member q other").exit_code == 69
