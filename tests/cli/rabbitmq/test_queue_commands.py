"""Texts and exit codes are those of a live RabbitMQ 4.3.6 that is alone."""

from __future__ import annotations

import pytest

from tests.cli.canned import NODE, canned

ANSWERS = {
    "GET /api/queues/%2F/qq": {"name": "qq", "vhost": "/", "type": "quorum"},
    "GET /api/queues/%2F/c": {"name": "c", "vhost": "/", "type": "classic"},
    "GET /api/queues/%2F/s": {"name": "s", "vhost": "/", "type": "stream", "messages": 0},
    "GET /api/queues": [{"name": "qq", "vhost": "/", "type": "quorum"}, {"type": "stream"}, {"type": "classic"}],
    "GET /_broker/queues/%2F/qq/peek?count=1&truncate=64&offset=2": {"messages": []},
}
UNSUPPORTED = "Error:\n{:unsupported, :rabbit_classic_queue}\n"
NO_QUEUE = "queue 'nope' was not found in virtual host '/'\n"
NO_OBJECT = "Object (queue, stream, exchange, etc) was not found\n"


@pytest.mark.parametrize(
    ("line", "complaint", "exit_code"),
    [
        ("queues quorum_status nope", NO_QUEUE, 65),
        ("queues quorum_status c", UNSUPPORTED, 69),
        ("queues stream_status nope", NO_OBJECT, 65),
        ("queues stream_status qq", "Error:\nCannot get stream status of a quorum queue\n", 69),
        ("queues peek qq 3", "Error:\nTarget queue does not have a message at that position\n", 69),
        ("queues peek c 1", "Error:\nCannot peek into a classic queue\n", 69),
        ("queues peek s 1", "Error:\nnot_quorum_queue\n", 69),
        ("queues reclaim_quorum_memory qq", "", 0),
        ("queues reclaim_quorum_memory c", "Error:\nThis operation is not applicable to classic queues\n", 69),
        ("queues transfer_leadership qq a@b", "Error:\nunknown_member\n", 69),
        ("queues transfer_leadership c a@b", "Error:\nCannot transfer leadership of a non-quorum queue\n", 69),
        ("queues add_member qq a@b", "Error: node a@b is not a member of the cluster\n", 64),
        (f"queues add_member qq {NODE}", "", 0),
        (f"queues add_member c {NODE}", UNSUPPORTED, 69),
        ("queues delete_member nope a@b", NO_QUEUE, 65),
        ("queues grow a@b all", "Error: node a@b is not a member of the cluster\n", 64),
        ("queues shrink a@b", "Error:\n{:node_not_running, :a@b}\n", 69),
        ("queues rebalance bogus", "Error:\ntype bogus is not supported. Try one of all, quorum, stream.\n", 69),
        ("streams add_replica s a@b", "Error:\nnode_not_running\n", 69),
        ("streams add_replica c a@b", "Error:\nCannot add replicas to classic queues\n", 69),
        ("streams delete_replica s a@b", "Error:\nCannot delete the last member of a stream\n", 69),
        ("streams restart_stream c", "Error:\n{:not_supported_for_type, :rabbit_classic_queue}\n", 69),
        ("streams restart_stream nope", NO_OBJECT, 65),
    ],
)
def test_commands_for_members_answer_as_a_node_that_is_alone(line: str, complaint: str, exit_code: int) -> None:
    with canned(ANSWERS) as api:
        tool, _, words = line.partition(" ")
        done = api.run(f"rabbitmq-{tool} -q {words}")
    assert (done.output, done.exit_code) == ("", exit_code)
    assert done.complaint.startswith(complaint)
    assert bool(done.complaint) is bool(complaint)


def test_the_leader_is_the_single_node() -> None:
    with canned(ANSWERS) as api:
        lines = api.run("rabbitmq-queues quorum_status qq --formatter csv").output.splitlines()
        assert lines[1].startswith(f'"{NODE}","leader","voter"')
        assert api.run("rabbitmq-streams -q restart_stream s").output == f"{NODE}\n"
        assert api.run("rabbitmq-queues -s rebalance all --formatter table").output == f"{NODE}\t1\t1\n"
        assert api.run("rabbitmq-queues -s force_checkpoint").output == "/\tqq\t{ok}\n"
        assert api.run("rabbitmq-queues -s force_checkpoint --queue-pattern [").exit_code == 65


def test_rabbitmq_3_has_no_such_answers() -> None:
    with canned(ANSWERS) as api:
        api.version = "3.13.7"
        done = api.run("rabbitmq-queues quorum_status qq --formatter csv")
        assert done == (f'"Node Name","Raft State","Term"\n"{NODE}","leader","1"\n', "", 0)
        assert api.run("rabbitmq-queues -q quorum_status none") == ("", "Error:\nnot_found\n", 69)
        assert api.run("rabbitmq-queues add_member qq other").exit_code == 69


def test_peek_shows_how_often_the_message_was_delivered() -> None:
    message = {"properties": {}, "routing_key": "qq", "exchange": "", "payload": "x", "delivery_count": 2}
    target = "GET /_broker/queues/%2F/qq/peek?count=1&truncate=64&offset=0"
    with canned({**ANSWERS, target: {"messages": [message]}}) as api:
        lines = api.run("rabbitmq-queues -s peek qq 1 --formatter csv").output.splitlines()
    assert lines[-1] == '"header.x-delivery-count","2"'
