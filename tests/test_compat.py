"""What clients see of the version of RabbitMQ that is imitated."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import commands

from amqp_broker.broker.access import Permission
from amqp_broker.compat import DEFAULT, PROFILES
from amqp_broker.config import Config, ConfigError
from tests.peer import Lab, Peer


def connect(compat: str) -> Peer:
    return Lab(compat=compat).connect()


def answer_to_tune(compat: str, frame_max: int) -> Peer:
    peer = Lab(compat=compat).peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    peer.expect(commands.Connection.Start, channel=0)
    peer.send(commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest"), channel=0)
    peer.expect(commands.Connection.Tune, channel=0)
    peer.send(commands.Connection.TuneOk(2047, frame_max, 0), commands.Connection.Open("/"), channel=0)
    return peer


def test_the_default_is_a_version_that_existing_clients_get_along_with() -> None:
    assert DEFAULT == "4.2"
    assert Config().profile is PROFILES["4.2"]


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load({"compat": "5.0"}, {})
    assert str(caught.value) == "compat '5.0' is none of 3.13, 4.2, 4.3"


@pytest.mark.parametrize(
    ("compat", "version", "mechanisms"),
    [
        ("3.13", "3.13.7", "PLAIN AMQPLAIN"),
        ("4.2", "4.2.1", "PLAIN AMQPLAIN ANONYMOUS"),
        ("4.3", "4.3.5", "PLAIN AMQPLAIN ANONYMOUS"),
    ],
)
def test_the_broker_says_which_version_it_is(compat: str, version: str, mechanisms: str) -> None:
    peer = Lab(compat=compat).peer()
    peer.send_bytes(b"AMQP\x00\x00\x09\x01")
    start = peer.expect(commands.Connection.Start, channel=0)
    said = start.server_properties["version"]
    assert (said.decode() if isinstance(said, bytes) else said) == version
    assert start.mechanisms.split() == mechanisms.split()


@pytest.mark.parametrize(("compat", "lowest"), [("3.13", 4096), ("4.2", 8192), ("4.3", 8192)])
def test_the_smallest_frame_max(compat: str, lowest: int) -> None:
    answer_to_tune(compat, lowest).expect(commands.Connection.OpenOk, channel=0)
    text = answer_to_tune(compat, lowest - 1).expect_connection_close(530)
    assert text.endswith(f"frame_max = {lowest - 1} is lower than the minimum allowed value ({lowest})")


@pytest.mark.parametrize(("compat", "largest"), [("3.13", 134_217_728), ("4.2", 16_777_216), ("4.3", 16_777_216)])
def test_the_largest_message(compat: str, largest: int) -> None:
    assert Lab(compat=compat).broker.config.message_bytes_max == largest
    assert Lab(compat=compat, message_bytes_max=7).broker.config.message_bytes_max == 7


@pytest.mark.parametrize("compat", ["3.13", "4.2"])
def test_a_queue_may_be_neither_durable_nor_exclusive_until_4_3(compat: str) -> None:
    connect(compat).declare("q")


def test_4_3_takes_no_queue_that_is_neither_durable_nor_exclusive() -> None:
    peer = connect("4.3")
    peer.declare("durable", durable=True)
    peer.declare("exclusive", exclusive=True)
    peer.send(commands.Queue.Declare(queue="q"))
    assert peer.expect_connection_close(541) == (
        "INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated. "
        "By default, this feature is not permitted anymore."
    )


@pytest.mark.parametrize(("compat", "delivered"), [("3.13", 1), ("4.2", 1), ("4.3", 2)])
def test_a_global_prefetch_is_one_for_each_consumer_in_4_3(compat: str, delivered: int) -> None:
    peer = connect(compat)
    peer.declare("q", durable=True)
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    peer.call(commands.Basic.Qos(prefetch_count=1, global_=True))
    for tag in ("one", "two"):
        peer.send(commands.Basic.Consume(queue="q", consumer_tag=tag))
    received = [peer.next()[0] for _ in range(2 + 3 * delivered)]
    assert sum(isinstance(value, commands.Basic.Deliver) for value in received) == delivered
    peer.expect_nothing()


@pytest.mark.parametrize(
    ("compat", "arguments", "problem"),
    [
        ("4.2", {"x-queue-mode": "odd"}, "unsupported queue mode 'odd'"),
        ("4.3", {"x-queue-mode": "odd"}, ""),
        ("4.2", {"x-queue-version": 1}, ""),
        ("4.3", {"x-queue-version": 1}, "unsupported queue version '1'"),
        ("4.3", {"x-queue-version": 2}, ""),
    ],
)
def test_modes_and_versions_of_classic_queues(compat: str, arguments: dict[str, Any], problem: str) -> None:
    peer = connect(compat)
    peer.send(commands.Queue.Declare(queue="q", durable=True, arguments=arguments))
    if problem:
        assert problem in peer.expect_channel_close(406)
    else:
        peer.expect(commands.Queue.DeclareOk)


def test_4_3_has_no_master_locator() -> None:
    connect("4.2").declare("q", durable=True, arguments={"x-queue-master-locator": "min-masters"})
    peer = connect("4.3")
    peer.send(commands.Queue.Declare(queue="q", durable=True, arguments={"x-queue-master-locator": "min-masters"}))
    assert "`queue_master_locator` is deprecated" in peer.expect_connection_close(541)


@pytest.mark.parametrize(
    ("compat", "permission", "is_allowed"),
    [
        ("4.2", Permission("", "", ""), True),
        ("4.3", Permission("", "", ""), False),
        ("4.3", Permission("q", "", ""), True),
        ("4.3", Permission("", "q", ""), True),
        ("4.3", Permission("", "", "q"), True),
    ],
)
def test_declaring_passively_takes_some_permission_in_4_3(
    compat: str, permission: Permission, is_allowed: bool
) -> None:
    lab = Lab(compat=compat)
    peer = lab.connect()
    peer.declare("q", durable=True)
    lab.broker.set_permission(lab.broker.users["guest"], "/", permission)
    peer.send(commands.Queue.Declare(queue="q", passive=True))
    if is_allowed:
        peer.expect(commands.Queue.DeclareOk)
    else:
        peer.expect_channel_close(403)
