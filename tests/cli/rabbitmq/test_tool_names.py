from amqp_broker.cli.rabbitmq.command import CTL, DIAGNOSTICS, PLUGINS, QUEUES, STREAMS, UPGRADE
from amqp_broker.cli.rabbitmq.tool_names import TOOLS


def test_every_tool_is_a_command_of_the_program() -> None:
    assert list(TOOLS.values()) == [CTL, DIAGNOSTICS, PLUGINS, QUEUES, STREAMS, UPGRADE]
