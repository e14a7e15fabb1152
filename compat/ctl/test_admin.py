"""rabbitmqadmin creates and deletes objects, with the syntax of v1 and v2; `test_ctl.py` compares the output."""

from __future__ import annotations

import pytest

from compat.ctl.running import AmqpBrokerSide, ToolsAtRabbitMQ


@pytest.fixture(params=["new", pytest.param("tools_at_rabbitmq", marks=pytest.mark.verify)])
def side(request: pytest.FixtureRequest) -> AmqpBrokerSide | ToolsAtRabbitMQ:
    """Provide amqp-broker's tools, at amqp-broker and at RabbitMQ."""
    side: AmqpBrokerSide | ToolsAtRabbitMQ = request.getfixturevalue(request.param)
    return side


def test_objects_are_created_and_deleted_in_the_syntax_of_v1_and_v2(side: AmqpBrokerSide | ToolsAtRabbitMQ) -> None:
    done = [
        side.run(f"rabbitmqadmin {line}")
        for line in (
            "declare queue name=one durable=true arguments='{\"x-max-length\":3}'",
            "declare queue --name two --type quorum --durable true",
            "queues declare --name three --durable false --auto-delete true",
            "declare binding source=amq.topic destination=one routing_key=a.b",
            "declare user --name carol --password secret --tags monitoring",
            "publish routing_key=one payload=hello",
            "-q get queue=one ackmode=ack_requeue_false",
        )
    ]
    assert [outcome.exit_code for outcome in done] == [0] * 7
    assert "hello" in done[-1].output
    listed = side.run("rabbitmqadmin -f kvp list queues name durable auto_delete").output
    assert 'name="two" durable="True" auto_delete="False"' in listed
    assert 'name="three" durable="False" auto_delete="True"' in listed
    assert side.run("rabbitmqadmin -u carol -p secret list vhosts name").exit_code == 0
    for line, exit_code in (
        ("delete queue --name two", 0),
        ("delete queue --name two", 1),
        ("delete queue --name two --idempotently", 0),
        ("delete queue --name one", 0),
        ("delete queue --name three", 0),
        ("delete user --name carol", 0),
    ):
        assert side.run(f"rabbitmqadmin {line}").exit_code == exit_code, line
