"""Alarms: a connection is blocked at its next publish, until the last alarm is cleared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pamqp import commands
from pamqp.commands import Basic, Confirm, Queue, Tx

from amqp_broker.conformance.lab import Lab
from amqp_broker.conformance.scenario_channel import Channel
from compat.brokers import AmqpBroker
from compat.configured.area import Area
from compat.configured.evaluator import evaluate
from compat.configured.registry import configured_scenario
from compat.definitions.suite import api_of
from compat.oracles.rabbitmq import RabbitMQ

AREA = Area("alarms")


def _set_alarm(lab: Lab, resource: str, is_on: bool) -> None:
    """Set or clear an alarm as test suites do; amqp-broker evaluates the expression by this request."""
    lab.transcript.record(f"lab> {'sets' if is_on else 'clears'} the {resource} alarm")
    if isinstance(lab.broker, AmqpBroker):
        api_of(lab.broker).ask("PUT" if is_on else "DELETE", f"/_broker/alarms/{resource}")
        return
    limit = f"{{resource_limit, {resource}, node()}}"
    expression = f"set_alarm({{{limit}, []}})" if is_on else f"clear_alarm({limit})"
    assert isinstance(lab.broker, RabbitMQ)
    # The second call is answered when all connections have been notified.
    evaluate(lab.broker, f"rabbit_alarm:{expression}, rabbit_alarm:get_alarms().")


# Memory watermarks and limits of free disk space, as rabbitmq.conf has them, and as Erlang terms.
WATERMARKS = {"0.000000001": "0.000000001", "1B": "{absolute, 1}", "0.6": "0.6"}
FREE_SPACES = {"1000TB": "1000000000000000", "50MB": "50000000"}


def _set_limit(lab: Lab, resource: str, limit: str) -> None:
    """Limit the memory, or the free disk space, as rabbitmqctl does."""
    lab.transcript.record(f"lab> sets the {resource} limit to {limit}")
    if isinstance(lab.broker, AmqpBroker):
        name = {"memory": "memory-limit", "disk": "disk-free-limit"}[resource]
        assert api_of(lab.broker).ask("PUT", f"/_broker/{name}", {"value": limit}).is_ok
        return
    change = (
        f"vm_memory_monitor:set_vm_memory_high_watermark({WATERMARKS[limit]})"
        if resource == "memory"
        else f"rabbit_disk_monitor:set_disk_free_limit({FREE_SPACES[limit]})"
    )
    assert isinstance(lab.broker, RabbitMQ)
    evaluate(lab.broker, f"{change}, rabbit_alarm:get_alarms().")


@contextmanager
def _limit(lab: Lab, resource: str, limit: str) -> Iterator[None]:
    """Set a limit that is exceeded, then the former one."""
    _set_limit(lab, resource, limit)
    try:
        yield
    finally:
        _set_limit(lab, resource, "0.6" if resource == "memory" else "50MB")


def _shows_alarms(lab: Lab) -> None:
    """Record the answer of the health check."""
    assert isinstance(lab.broker, (AmqpBroker, RabbitMQ))
    answer = api_of(lab.broker).ask("GET", "/api/health/checks/alarms")
    alarms = sorted(alarm["resource"] for alarm in answer.value.get("alarms", ()))
    lab.transcript.record(f"lab> sees {answer.status}: {answer.value['status']}, {alarms}")


@contextmanager
def _alarm(lab: Lab, *resources: str) -> Iterator[None]:
    """Set alarms, and clear them whatever happens: all scenarios share the broker."""
    for resource in resources:
        _set_alarm(lab, resource, True)
    try:
        yield
    finally:
        for resource in resources:
            _set_alarm(lab, resource, False)


def _blocked(channel: Channel) -> None:
    channel.connection.expect(commands.Connection.Blocked)


def _unblocked(channel: Channel) -> None:
    channel.connection.expect(commands.Connection.Unblocked)


def _publish_is_blocked(channel: Channel, q: str) -> None:
    channel.publish(b"1", routing_key=q)
    _blocked(channel)


def _publish_has_arrived(channel: Channel, q: str) -> None:
    _unblocked(channel)
    channel.sync(q)
    channel.drain(q)


@configured_scenario
def the_next_publish_blocks_its_connection_until_the_alarm_is_cleared(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.publish(b"1", routing_key=q)
    channel.sync(q)
    with _alarm(lab, "memory"):
        channel.sync(q)
        channel.publish(b"2", routing_key=q)
        _blocked(channel)
    _publish_has_arrived(channel, q)


@configured_scenario
def an_alarm_of_the_disk_blocks_with_its_own_reason(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    with _alarm(lab, "disk"):
        _publish_is_blocked(channel, q)
    _publish_has_arrived(channel, q)


@configured_scenario
def two_alarms_are_one_reason_and_the_last_to_clear_unblocks(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    with _alarm(lab, "memory", "disk"):
        _publish_is_blocked(channel, q)
    _unblocked(channel)
    channel.drain(q)


@configured_scenario
def a_second_alarm_is_not_announced(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    with _alarm(lab, "memory"):
        _publish_is_blocked(channel, q)
        _set_alarm(lab, "disk", True)
    _set_alarm(lab, "disk", False)
    _unblocked(channel)
    channel.drain(q)


@configured_scenario
def a_connection_that_consumes_is_not_blocked(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    lab.put(q, b"1", b"2")
    with _alarm(lab, "memory"):
        channel.consume(q)
        for tag in channel.deliveries(2):
            channel.ack(tag)
        channel.sync(q)
        channel.call(Queue.Declare, queue=q, passive=True)


@configured_scenario
def a_publisher_may_get_and_ack_until_its_next_publish(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.publish(b"1", routing_key=q)
    channel.publish(b"2", routing_key=q)
    channel.sync(q)
    with _alarm(lab, "memory"):
        channel.get(q)
        channel.ack(1)
        channel.call(Queue.Purge, queue=q)
        channel.publish(b"3", routing_key=q)
        _blocked(channel)
    _publish_has_arrived(channel, q)


@configured_scenario
def a_blocked_connection_still_receives_deliveries(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.consume(q)
    other = lab.channel()
    lab.put(q, b"1")
    channel.expect(Basic.Deliver)
    with _alarm(lab, "memory"):
        channel.publish(b"waits", routing_key=q)
        _blocked(channel)
        other.call(Queue.Declare, queue=q, passive=True)
    _unblocked(channel)
    channel.expect(Basic.Deliver)


@configured_scenario
def all_that_follows_a_blocked_publish_waits_with_it(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    other = lab.channel()
    with _alarm(lab, "memory"):
        _publish_is_blocked(channel, q)
        channel.publish(b"2", routing_key=q)
        channel.send(Queue.Purge, queue=q)
        channel.publish(b"3", routing_key=q)
        other.call(Queue.Declare, queue=q, passive=True)
    _unblocked(channel)
    channel.expect(Queue.PurgeOk)
    channel.sync(q)
    channel.drain(q)


@configured_scenario
def a_connection_that_opens_during_an_alarm_is_blocked_when_it_publishes(lab: Lab) -> None:
    q = lab.queue()
    with _alarm(lab, "memory"):
        channel = lab.channel()
        channel.call(Queue.Declare, queue=q, passive=True)
        _publish_is_blocked(channel, q)
    _publish_has_arrived(channel, q)


@configured_scenario
def an_alarm_between_two_publishes_is_not_noticed(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.publish(b"1", routing_key=q)
    channel.sync(q)
    with _alarm(lab, "memory"):
        channel.sync(q)
    channel.publish(b"2", routing_key=q)
    channel.sync(q)
    channel.drain(q)


@configured_scenario
def a_client_without_the_capability_is_blocked_without_a_word(lab: Lab) -> None:
    channel, q = lab.connect(capabilities={"basic.nack": True}).channel(), lab.queue()
    other = lab.channel()
    with _alarm(lab, "memory"):
        channel.publish(b"1", routing_key=q)
        other.sync(q)
        other.call(Queue.Declare, queue=q, passive=True)
    channel.sync(q)
    channel.drain(q)


@configured_scenario
def a_confirm_comes_after_the_alarm(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.call(Confirm.Select)
    with _alarm(lab, "memory"):
        _publish_is_blocked(channel, q)
    _unblocked(channel)
    channel.expect(Basic.Ack)


@configured_scenario
def a_transaction_is_blocked_at_its_publish(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    channel.call(Tx.Select)
    with _alarm(lab, "memory"):
        _publish_is_blocked(channel, q)
    _unblocked(channel)
    channel.call(Tx.Commit)
    channel.drain(q)


@configured_scenario
def a_publish_to_no_exchange_is_blocked_before_it_is_refused(lab: Lab) -> None:
    channel = lab.channel()
    with _alarm(lab, "memory"):
        channel.publish(b"1", exchange="missing", routing_key="x")
        _blocked(channel)
    _unblocked(channel)
    channel.expect(commands.Channel.Close)


@configured_scenario
def one_channel_blocks_all_of_its_connection(lab: Lab) -> None:
    connection, q = lab.connect(), lab.queue()
    publishing, other = connection.channel(), connection.channel()
    with _alarm(lab, "memory"):
        publishing.publish(b"1", routing_key=q)
        _blocked(publishing)
        other.send(Basic.Qos, prefetch_count=1)
    _unblocked(publishing)
    other.expect(Basic.QosOk)


@configured_scenario
def a_blocked_connection_closes_after_the_alarm(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    with _alarm(lab, "memory"):
        _publish_is_blocked(channel, q)
        channel.connection.send(commands.Connection.Close, reply_code=200, reply_text="bye")
    _unblocked(channel)
    channel.connection.expect(commands.Connection.CloseOk)
    other = lab.channel()
    other.sync(q)
    other.drain(q)


@configured_scenario
def a_low_watermark_blocks_until_the_former_one_is_set(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    _shows_alarms(lab)
    with _limit(lab, "memory", "0.000000001"):
        _shows_alarms(lab)
        _publish_is_blocked(channel, q)
    _publish_has_arrived(channel, q)
    _shows_alarms(lab)


@configured_scenario
def a_watermark_of_one_octet_blocks(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    with _limit(lab, "memory", "1B"):
        _publish_is_blocked(channel, q)
    _publish_has_arrived(channel, q)


@configured_scenario
def a_limit_above_the_free_disk_space_blocks_until_the_former_one_is_set(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    with _limit(lab, "disk", "1000TB"):
        _shows_alarms(lab)
        _publish_is_blocked(channel, q)
    _publish_has_arrived(channel, q)
    _shows_alarms(lab)


@configured_scenario
def a_publisher_waits_for_the_last_of_two_limits(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    with _limit(lab, "memory", "0.000000001"):
        with _limit(lab, "disk", "1000TB"):
            _shows_alarms(lab)
            _publish_is_blocked(channel, q)
        _shows_alarms(lab)
    _publish_has_arrived(channel, q)


@configured_scenario
def an_alarm_by_command_and_a_watermark_are_one_alarm(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    with _limit(lab, "memory", "0.000000001"):
        _publish_is_blocked(channel, q)
        _set_alarm(lab, "memory", True)
        _shows_alarms(lab)
        _set_alarm(lab, "memory", False)
        _unblocked(channel)
        _shows_alarms(lab)
    channel.sync(q)
    channel.drain(q)


@configured_scenario
def a_blocked_publisher_that_leaves_takes_its_message_with_it(lab: Lab) -> None:
    channel, q = lab.channel(), lab.queue()
    with _limit(lab, "memory", "0.000000001"):
        _publish_is_blocked(channel, q)
        channel.connection.hang_up()
        other = lab.channel()
        other.call(Queue.Declare, queue=q, passive=True)
    other.sync(q)
    other.drain(q)
