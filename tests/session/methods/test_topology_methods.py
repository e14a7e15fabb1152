"""Class queue: declare, bind, purge, delete, and the shortcuts for the queue declared last."""

from __future__ import annotations

from typing import Any

import pytest
from pamqp import base
from pamqp.commands import Basic, Channel, Connection, Exchange, Queue

from tests.peer import Lab, Peer, blamed, shown
from tests.present import present

LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally "
    "declared on another connection or the exclusive property value does not match that of the original declaration."
)


class Declare(Queue.Declare):
    """queue.declare with any name: pamqp refuses some that RabbitMQ takes."""

    def validate(self) -> None:
        pass


def refusal(peer: Peer, method: base.Frame, code: int) -> str:
    """The text of the channel.close that a method got; the channel is open again."""
    peer.send(method)
    close = peer.expect(Channel.Close)
    assert close.reply_code == code
    assert blamed(close) == method.index
    peer.send(Channel.CloseOk())
    peer.open_channel(1)
    text: str = close.reply_text
    return text


def answer(peer: Peer, queue: str, **options: Any) -> tuple[str, int, int]:
    ok = peer.declare(queue, **options)
    return present(ok.queue), present(ok.message_count), present(ok.consumer_count)


# Declaring


def test_a_queue_is_declared_and_declared_again(peer: Peer) -> None:
    for _ in range(2):
        assert answer(peer, "q", durable=True) == ("q", 0, 0)
    assert answer(peer, "q", passive=True) == ("q", 0, 0)


def test_declare_ok_has_the_counts_of_messages_and_consumers(peer: Peer) -> None:
    peer.declare("q")
    for _ in range(3):
        peer.publish("q")
    assert peer.get("q", no_ack=False) is not None
    assert answer(peer, "q") == ("q", 2, 0)
    peer.call(Basic.Qos(prefetch_count=1))
    peer.consume("q")
    peer.deliveries()
    assert answer(peer, "q", passive=True) == ("q", 1, 1)


def test_declare_ok_does_not_count_the_readers_of_a_stream(peer: Peer) -> None:
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.call(Basic.Qos(prefetch_count=1))
    peer.consume("s")
    assert answer(peer, "s", passive=True) == ("s", 0, 0)


def test_the_broker_names_a_queue_declared_without_a_name(peer: Peer) -> None:
    names = {present(peer.declare("").queue) for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("amq.gen-") and len(name) == len("amq.gen-") + 22 for name in names)


@pytest.mark.parametrize("name", ["with space", "é", "日本", 'a"b', "q!§$%&", "x" * 255, "\x00", "AMQ.x", "amqx"])
def test_a_queue_may_have_any_name(peer: Peer, name: str) -> None:
    for _ in range(2):
        peer.send(Declare(queue=name))
        assert peer.expect(Queue.DeclareOk).queue == name


@pytest.mark.parametrize("name", ["amq.foo", "amq.", "amq.gen-AAAAAAAAAAAAAAAAAAAAAA"])
def test_names_with_the_reserved_prefix_are_the_brokers(peer: Peer, name: str) -> None:
    text = f"ACCESS_REFUSED - queue name '{name}' contains reserved prefix 'amq.*'"
    assert refusal(peer, Queue.Declare(queue=name), 403) == text
    assert refusal(peer, Queue.Declare(queue=name, passive=True), 404) == f"NOT_FOUND - no queue '{name}' in vhost '/'"


def test_a_name_that_the_broker_chose_cannot_be_declared_again(peer: Peer) -> None:
    name = present(peer.declare("", exclusive=True).queue)
    peer.declare(name, passive=True)
    refusal(peer, Queue.Declare(queue=name, exclusive=True), 403)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (
            {"durable": True, "auto_delete": True},
            "'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'",
        ),
        ({"auto_delete": True}, "'auto_delete' for queue 'q' in vhost '/': received 'true' but current is 'false'"),
        (
            {"arguments": {"x-message-ttl": 70_000}},
            "'x-message-ttl' for queue 'q' in vhost '/': "
            "received the value '70000' of type 'signedint' but current is none",
        ),
    ],
)
def test_redeclaring_a_queue_with_other_attributes_is_refused(peer: Peer, changed: dict[str, Any], text: str) -> None:
    peer.declare("q")
    assert refusal(peer, Queue.Declare(queue="q", **changed), 406) == f"PRECONDITION_FAILED - inequivalent arg {text}"


def test_a_passive_declare_checks_the_name_only(peer: Peer) -> None:
    peer.declare("q")
    peer.declare("q", passive=True, durable=True, auto_delete=True, arguments={"x-expires": "nonsense"})


def test_a_passive_declare_without_a_name_finds_nothing(peer: Peer) -> None:
    peer.declare("q")
    assert refusal(peer, Queue.Declare(queue="", passive=True), 404) == "NOT_FOUND - no queue '' in vhost '/'"


def test_an_invalid_argument_is_refused(peer: Peer) -> None:
    text = refusal(peer, Queue.Declare(queue="q", arguments={"x-expires": 0}), 406)
    assert text == "PRECONDITION_FAILED - invalid arg 'x-expires' for queue 'q' in vhost '/': {value_zero,0}"


def test_arguments_are_checked_after_the_name_and_before_the_comparison(peer: Peer) -> None:
    assert "reserved prefix" in refusal(peer, Queue.Declare(queue="amq.x", arguments={"x-expires": 0}), 403)


def test_line_ends_are_stripped_from_queue_names(peer: Peer) -> None:
    peer.send(Declare(queue="q\r\n"))
    assert peer.expect(Queue.DeclareOk).queue == "q"
    peer.send_bytes(_frame(Basic.Get, b"\0\0\2q\n\1"))
    assert peer.expect_channel_close(404) == "NOT_FOUND - no queue 'q\n' in vhost '/'"


def _frame(kind: type[base.Frame], arguments: bytes) -> bytes:
    payload = kind.index.to_bytes(4, "big") + arguments
    return b"\x01\x00\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"


def test_the_queues_of_a_vhost_are_limited(lab: Lab, peer: Peer) -> None:
    lab.vhost.limits.set("max-queues", 1)
    peer.declare("p")
    text = refusal(peer, Queue.Declare(queue="q"), 406)
    assert text == "PRECONDITION_FAILED - cannot declare queue 'q': queue limit in vhost '/' (1) is reached"
    peer.declare("p")
    peer.call(Queue.Delete(queue="p"))
    peer.declare("q")


# Exclusive and auto-delete


@pytest.mark.parametrize(
    "method",
    [
        Queue.Declare(queue="q"),
        Queue.Declare(queue="q", exclusive=True),
        Queue.Declare(queue="q", passive=True),
        Queue.Bind(queue="q", exchange="amq.direct", routing_key="k"),
        Queue.Purge(queue="q"),
        Queue.Delete(queue="q"),
        Basic.Consume(queue="q"),
        Basic.Get(queue="q"),
    ],
    ids=shown,
)
def test_an_exclusive_queue_is_locked_for_other_connections(peer: Peer, other: Peer, method: base.Frame) -> None:
    peer.declare("q", exclusive=True)
    assert refusal(other, method, 405) == LOCKED


def test_only_the_owner_of_an_exclusive_queue_can_unbind_it(peer: Peer, other: Peer) -> None:
    peer.declare("q", exclusive=True)
    peer.call(Queue.Bind(queue="q", exchange="amq.direct", routing_key="k"))
    other.call(Queue.Unbind(queue="q", exchange="amq.direct", routing_key="not bound"))
    assert refusal(other, Queue.Unbind(queue="q", exchange="amq.direct", routing_key="k"), 405) == LOCKED


def test_every_connection_can_publish_to_an_exclusive_queue(peer: Peer, other: Peer) -> None:
    peer.declare("q", exclusive=True)
    other.publish("q", b"1", mandatory=True)
    other.expect_nothing()
    assert peer.get("q") is not None


def test_a_queue_does_not_change_its_owner(peer: Peer) -> None:
    peer.declare("q")
    assert refusal(peer, Queue.Declare(queue="q", exclusive=True), 405) == LOCKED
    peer.declare("mine", exclusive=True, durable=True)
    peer.declare("mine", exclusive=True)
    assert "locked queue 'mine'" in refusal(peer, Queue.Declare(queue="mine"), 405)


def test_an_exclusive_queue_stays_when_its_channel_closes(peer: Peer) -> None:
    peer.declare("q", exclusive=True)
    peer.call(Channel.Close(200, "bye", 0, 0))
    peer.open_channel(2)
    peer.call(Queue.Declare(queue="q", exclusive=True), channel=2)


@pytest.mark.parametrize("end", ["cancel", "channel close", "channel error", "disconnect"])
def test_an_auto_delete_queue_is_deleted_with_its_last_consumer(lab: Lab, peer: Peer, other: Peer, end: str) -> None:
    peer.declare("q", auto_delete=True)
    peer.consume("q", "one")
    other.consume("q", "two")
    other.call(Basic.Cancel("two"))
    assert "q" in lab.vhost.queues
    match end:
        case "cancel":
            peer.call(Basic.Cancel("one"))
        case "channel close":
            peer.call(Channel.Close(200, "bye", 0, 0))
        case "channel error":
            peer.send(Basic.Ack(42))
        case "disconnect":
            peer.disconnect()
    assert "q" not in lab.vhost.queues


def test_an_auto_delete_queue_that_never_had_a_consumer_stays(lab: Lab, peer: Peer) -> None:
    peer.declare("q", auto_delete=True)
    assert peer.get("q") is None
    peer.disconnect()
    assert "q" in lab.vhost.queues


# Purging and deleting


def test_purging_drops_and_counts_ready_messages(peer: Peer) -> None:
    peer.declare("q")
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    assert peer.get("q", no_ack=False) is not None
    assert peer.call(Queue.Purge(queue="q")).message_count == 2
    assert peer.call(Queue.Purge(queue="q")).message_count == 0
    peer.send(Basic.Nack(1, requeue=True))
    got = peer.get("q")
    assert got is not None
    assert got[1].body == b"1"


def test_deleting_counts_ready_messages(peer: Peer) -> None:
    peer.declare("q")
    for _ in range(3):
        peer.publish("q")
    assert peer.get("q", no_ack=False) is not None
    assert peer.call(Queue.Delete(queue="q")).message_count == 2
    refusal(peer, Queue.Declare(queue="q", passive=True), 404)


@pytest.mark.parametrize("options", [{}, {"if_unused": True, "if_empty": True}])
def test_deleting_a_missing_queue_succeeds(peer: Peer, options: dict[str, bool]) -> None:
    assert peer.call(Queue.Delete(queue="missing", **options)).message_count == 0


def test_purging_a_missing_queue_is_refused(peer: Peer) -> None:
    assert refusal(peer, Queue.Purge(queue="missing"), 404) == "NOT_FOUND - no queue 'missing' in vhost '/'"


def test_a_queue_in_use_or_with_messages_is_deleted_only_without_conditions(lab: Lab, peer: Peer, other: Peer) -> None:
    peer.declare("q")
    other.call(Basic.Qos(prefetch_count=1))
    other.consume("q")
    for _ in range(2):
        peer.publish("q")
    both = Queue.Delete(queue="q", if_unused=True, if_empty=True)
    not_empty = "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty"
    assert refusal(peer, both, 406) == not_empty
    assert refusal(peer, Queue.Delete(queue="q", if_empty=True), 406) == not_empty
    peer.call(Queue.Purge(queue="q"))
    assert refusal(peer, both, 406) == "PRECONDITION_FAILED - queue 'q' in vhost '/' in use"
    peer.call(Queue.Delete(queue="q", if_empty=True))


def test_a_deleted_queue_can_be_declared_with_other_attributes(peer: Peer) -> None:
    peer.declare("q", durable=True)
    peer.call(Queue.Delete(queue="q"))
    peer.declare("q", auto_delete=True)


# The queue declared last


def test_an_empty_name_means_the_queue_declared_last(lab: Lab, peer: Peer) -> None:
    peer.declare("p")
    peer.declare("q")
    peer.call(Queue.Bind(queue="", exchange="amq.direct", routing_key="k"))
    peer.publish("k", b"1", exchange="amq.direct")
    peer.publish("k", b"2", exchange="amq.direct")
    assert peer.get("") is not None
    assert peer.call(Queue.Purge(queue="")).message_count == 1
    peer.consume("")
    peer.call(Queue.Unbind(queue="", exchange="amq.direct", routing_key="k"))
    peer.send(Queue.Delete(queue=""))
    peer.expect(Queue.DeleteOk)
    assert list(lab.vhost.queues) == ["p"]


@pytest.mark.parametrize(
    "method",
    [
        Queue.Bind(queue="", exchange="amq.direct", routing_key="k"),
        Queue.Unbind(queue="", exchange="amq.direct", routing_key="k"),
        Queue.Purge(queue=""),
        Queue.Delete(queue=""),
        Basic.Get(queue=""),
        Basic.Consume(queue=""),
    ],
    ids=lambda method: method.name,
)
def test_an_empty_name_without_an_earlier_declaration_is_refused(peer: Peer, method: base.Frame) -> None:
    assert refusal(peer, method, 404) == "NOT_FOUND - no previously declared queue"


def test_the_queue_declared_last_belongs_to_the_channel(peer: Peer) -> None:
    peer.declare("q")
    peer.open_channel(2)
    peer.send(Basic.Get(queue=""), channel=2)
    assert peer.expect_channel_close(404, channel=2) == "NOT_FOUND - no previously declared queue"


@pytest.mark.parametrize("name", ["", "q"])
def test_the_queue_declared_last_may_have_been_named_by_the_broker_or_passively(peer: Peer, name: str) -> None:
    peer.declare("q")
    peer.declare("other")
    declared = present(peer.declare(name, passive=bool(name)).queue)
    peer.call(Queue.Bind(queue="", exchange="amq.fanout"))
    peer.publish(exchange="amq.fanout")
    assert peer.get(declared) is not None


def test_the_queue_declared_last_may_have_been_deleted(peer: Peer) -> None:
    peer.declare("q")
    peer.call(Queue.Delete(queue="q"))
    assert refusal(peer, Basic.Get(queue=""), 404) == "NOT_FOUND - no queue 'q' in vhost '/'"


# Binding


def test_a_binding_without_queue_and_key_has_the_name_of_the_queue_as_key(peer: Peer) -> None:
    peer.declare("q")
    peer.call(Queue.Bind(queue="", exchange="amq.direct", routing_key=""))
    for key in ("q", ""):
        peer.publish(key, b"x", exchange="amq.direct", mandatory=True)
    assert peer.expect(Basic.Return).routing_key == ""
    peer.expect_content()
    peer.call(Queue.Unbind(queue="", exchange="amq.direct", routing_key=""))
    peer.publish("q", exchange="amq.direct", mandatory=True)
    peer.expect(Basic.Return)


def test_a_binding_of_a_named_queue_without_key_has_the_empty_key(peer: Peer) -> None:
    peer.declare("q")
    peer.call(Queue.Bind(queue="q", exchange="amq.direct", routing_key=""))
    peer.publish("", b"x", exchange="amq.direct", mandatory=True)
    peer.expect_nothing()


@pytest.mark.parametrize(
    ("queue", "exchange", "text"),
    [
        ("missing", "amq.direct", "no queue 'missing' in vhost '/'"),
        ("q", "missing", "no exchange 'missing' in vhost '/'"),
        ("missing", "absent", "no exchange 'absent' in vhost '/'"),
    ],
)
def test_binding_a_missing_object_is_refused_and_unbinding_it_succeeds(
    peer: Peer, queue: str, exchange: str, text: str
) -> None:
    peer.declare("q")
    assert refusal(peer, Queue.Bind(queue=queue, exchange=exchange), 404) == f"NOT_FOUND - {text}"
    peer.call(Queue.Unbind(queue=queue, exchange=exchange))


@pytest.mark.parametrize("kind", [Queue.Bind, Queue.Unbind])
def test_binding_and_unbinding_at_the_default_exchange_are_refused(
    peer: Peer, kind: type[Queue.Bind | Queue.Unbind]
) -> None:
    peer.declare("q")
    text = refusal(peer, kind(queue="q", exchange="", routing_key="k"), 403)
    assert text == "ACCESS_REFUSED - operation not permitted on the default exchange"


def test_deleting_a_queue_removes_its_bindings(lab: Lab, peer: Peer) -> None:
    peer.declare("q")
    peer.call(Exchange.Declare(exchange="x", auto_delete=True))
    peer.call(Queue.Bind(queue="q", exchange="x", routing_key="k"))
    peer.call(Queue.Bind(queue="q", exchange="amq.direct", routing_key="k"))
    peer.call(Queue.Delete(queue="q"))
    assert "x" not in lab.vhost.exchanges
    peer.declare("q")
    peer.publish("k", exchange="amq.direct", mandatory=True)
    peer.expect(Basic.Return)


def test_a_deleted_queue_is_missing_for_all_connections(peer: Peer, other: Peer) -> None:
    peer.declare("q")
    other.call(Queue.Delete(queue="q"))
    peer.send(Connection.UpdateSecret("x", "y"), channel=0)
    peer.expect(Connection.UpdateSecretOk, channel=0)
    refusal(peer, Queue.Bind(queue="q", exchange="amq.direct"), 404)
