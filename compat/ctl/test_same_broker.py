"""RabbitMQ's tools and ours, asked about the same RabbitMQ: what they print is the same."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pika
import pytest

from compat.ctl.running import Theirs

# Who can be asked only by RabbitMQ's HTTP API, which has statistics every five seconds.
STATISTICS_S = 7.0

LISTS = [
    "rabbitmqctl list_users",
    "rabbitmqctl -q list_users",
    "rabbitmqctl -s list_users",
    "rabbitmqctl list_users --formatter json",
    "rabbitmqctl list_users --formatter csv",
    "rabbitmqctl list_vhosts name tracing description",
    "rabbitmqctl list_permissions",
    "rabbitmqctl list_permissions -p nowhere",
    "rabbitmqctl list_user_permissions guest",
    "rabbitmqctl list_policies",
    "rabbitmqctl list_parameters",
    "rabbitmqctl list_queues",
    "rabbitmqctl list_queues name durable auto_delete arguments type policy messages consumers",
    "rabbitmqctl --silent list_queues name,durable,name",
    "rabbitmqctl list_queues --formatter json name durable arguments messages",
    "rabbitmqctl list_queues --formatter csv name arguments",
    "rabbitmqctl list_queues --formatter pretty_table name arguments",
    "rabbitmqctl list_queues --formatter erlang name messages arguments",
    "rabbitmqctl -t 30 list_queues -p nowhere",
    "rabbitmqctl list_queues -p empty --formatter json",
    "rabbitmqctl list_queues bogus -q",
    "rabbitmqctl list_exchanges name type durable auto_delete internal arguments policy",
    "rabbitmqctl list_bindings",
    "rabbitmqctl list_bindings --formatter json",
    "rabbitmqctl list_connections user peer_host state channels protocol auth_mechanism vhost timeout",
    "rabbitmqctl list_channels number user vhost consumer_count messages_unacknowledged prefetch_count confirm name",
    "rabbitmqctl list_consumers queue_name consumer_tag ack_required prefetch_count active arguments",
    "rabbitmqctl list_consumers --formatter json queue_name consumer_tag arguments",
]


@pytest.fixture(scope="module")
def busy(theirs: Theirs) -> Iterator[Theirs]:
    """A RabbitMQ on which there is something of everything."""
    theirs.run("rabbitmqctl add_vhost empty")
    theirs.run('rabbitmqctl set_policy p ^q1 \'{"max-length":50,"expires":100000}\' --apply-to queues')
    connection = pika.BlockingConnection(pika.URLParameters(theirs.broker.url))
    channel = connection.channel()
    channel.queue_declare("q1", durable=True, arguments={"x-max-length": 5})
    channel.queue_declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    channel.exchange_declare("e1", "topic", durable=True, arguments={"alternate-exchange": "amq.fanout"})
    channel.queue_bind("q1", "e1", "a.#")
    channel.queue_bind("quorum", "e1", "b\tc", {"k": 1})
    channel.exchange_bind("amq.fanout", "e1", "z")
    for _ in range(3):
        channel.basic_publish("", "quorum", b"x")
    channel.basic_qos(prefetch_count=7)
    channel.basic_consume("q1", lambda *_: None, consumer_tag="ct")
    deadline = time.monotonic() + STATISTICS_S
    while time.monotonic() < deadline:
        connection.process_data_events(0.2)
    yield theirs
    connection.close()


@pytest.mark.parametrize("line", LISTS)
def test_a_list_is_printed_as_rabbitmq_prints_it(busy: Theirs, line: str) -> None:
    real = busy.run(line)
    if "pretty_table" in line or "erlang" in line:
        assert sorted(busy.run_with_our_tools(line).output) == sorted(real.output)
    else:
        assert busy.run_with_our_tools(line).without() == real.without()


def test_a_change_is_told_as_rabbitmq_tells_it_and_done(theirs: Theirs) -> None:
    """Each command by our tools, then by RabbitMQ's: those that refuse to do a thing twice show that it was done."""
    for line in (
        "rabbitmqctl add_vhost v1",
        "rabbitmqctl set_user_tags guest administrator custom",
        "rabbitmqctl set_user_tags guest administrator",
        "rabbitmqctl set_permissions -p v1 guest ^a b .*",
        "rabbitmqctl clear_permissions -p v1 guest",
        "rabbitmqctl set_topic_permissions -p v1 guest amq.topic ^a b",
        "rabbitmqctl clear_topic_permissions -p v1 guest amq.topic",
        "rabbitmqctl set_policy -p v1 --priority 3 --apply-to queues p2 ^q '{\"max-length\":5}'",
        "rabbitmqctl set_vhost_limits -p v1 '{\"max-connections\": 10}'",
        "rabbitmqctl list_vhost_limits -p v1",
        "rabbitmqctl clear_vhost_limits -p v1",
        "rabbitmqctl set_global_parameter gp '{\"a\":1}'",
        "rabbitmqctl set_cluster_name some@cluster",
    ):
        assert theirs.run_with_our_tools(line).without() == theirs.run(line).without(), line
    assert theirs.run_with_our_tools("rabbitmqctl add_user alice pw").exit_code == 0
    assert "already exists" in theirs.run("rabbitmqctl add_user alice pw").complaint
    assert theirs.run("rabbitmqctl authenticate_user alice pw").exit_code == 0
    assert theirs.run_with_our_tools("rabbitmqctl delete_vhost v1").exit_code == 0
    assert theirs.run("rabbitmqctl delete_vhost v1").exit_code == 65


REFUSED = [
    "rabbitmqctl add_user guest pw",
    "rabbitmqctl change_password nobody pw",
    "rabbitmqctl set_user_tags nobody x",
    "rabbitmqctl delete_user nobody",
    "rabbitmqctl list_user_permissions nobody",
    "rabbitmqctl set_permissions -p nowhere guest .* .* .*",
    "rabbitmqctl set_permissions nobody .* .* .*",
    "rabbitmqctl delete_vhost nowhere",
    "rabbitmqctl set_policy p ^q '{\"bogus\":5}'",
    "rabbitmqctl set_policy p ^q 'not json'",
    "rabbitmqctl set_policy -p nowhere p ^q '{\"max-length\":5}'",
    "rabbitmqctl clear_policy nothing",
    "rabbitmqctl set_parameter bogus name 1",
    "rabbitmqctl clear_global_parameter nothing",
    "rabbitmqctl delete_queue nothing",
    "rabbitmqctl purge_queue nothing",
    "rabbitmqctl add_user",
    "rabbitmqctl add_user a b c",
    "rabbitmqctl add_user '' x",
    "rabbitmqctl list_queues --bogus",
    "rabbitmqctl list_users --timeout abc",
    "rabbitmqctl list_users -t 0",
    "rabbitmqctl list_queue",
    "rabbitmqctl add_usr x y",
    "rabbitmqctl help nothing",
    "rabbitmqctl set_vm_memory_high_watermark 5",
    "rabbitmqctl set_vm_memory_high_watermark bogus",
    "rabbitmqctl set_disk_free_limit bogus",
    "rabbitmqctl set_log_level bogus",
    "rabbitmqctl import_definitions /nowhere.json",
]


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_is_refused_as_rabbitmq_refuses_it(theirs: Theirs, line: str) -> None:
    assert theirs.run_with_our_tools(line).without() == theirs.run(line).without()
