"""A restart finds everything durable, as it was, and nothing else, however the broker ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.amqp import fields
from amqp_broker.broker.admin.access import Permission, TopicPermission
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.broker import PORTION_STEPS, Broker
from amqp_broker.broker.durability.paged_buffer import BUFFER_BYTES_MAX
from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from amqp_broker.broker.exchanges.types import EXCHANGE_TYPES
from amqp_broker.broker.operations import restoring
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.store.environment import StoreUnusable
from amqp_broker.store.journal import GARBAGE_BATCH
from amqp_broker.store.store import Store
from tests.peer import Lab, Peer, deaths_in
from tests.present import present
from tests.store.stores import commit

NON_ASCII = "ü" * 127
OCTETS = bytes(range(128, 256)).decode("utf-8", "surrogateescape") * 2


class Disk:
    """A folder, and labs whose brokers keep things there; one at a time, as `restart` ends the one before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store: Store | None = None
        self.lab: Lab
        self.restart()

    @property
    def broker(self) -> Broker:
        return self.lab.broker

    def restart(self, duration_ms: int = 0) -> Lab:
        """Commit, and start a broker on the store that much later; deliveries stay unacked until then."""
        now = self.lab.now + duration_ms if self.store is not None else None
        self.close()
        self.store = Store(self.folder)
        self.lab = Lab()
        if now is not None:
            self.lab.now = now
        self.lab.broker = Broker(self.lab.broker.settings, lambda size: bytes(size), self.store.journal)
        self.lab.broker.now = self.lab.now
        self.was_empty = not self.store.recover(self.broker)
        if self.was_empty:
            self.broker.add_defaults()
        return self.lab

    def close(self) -> None:
        if self.store is not None:
            self.store.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path)
    yield disk
    disk.close()


def test_a_store_that_cannot_be_restored_is_let_go_of(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.lab.vhost.declare_queue(QueueDeclaration("q", {}, is_durable=True))
    disk.close()

    def fail(*_: object) -> None:
        raise ValueError("it is none")

    with monkeypatch.context() as patch:
        patch.setattr(restoring, "restore", fail)
        store = Store(disk.folder)
        with pytest.raises(StoreUnusable, match=r"cannot be read \(it is none\)"):
            store.recover(Broker(disk.broker.settings, bytes, store.journal))
    disk.store = None
    assert "q" in disk.restart().vhost.queues


def declare_all(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    for name, kind in [("e", "direct"), ("h", "headers"), (NON_ASCII, "topic"), ("auto", "fanout")]:
        vhost.declare_exchange(
            ExchangeDeclaration(name, kind, {}, is_durable=True, is_auto_delete=name == "auto", is_internal=name == "h")
        )
    arguments = {"x-max-length": fields.Long(5), "x-dead-letter-exchange": "e", "x-anything": [1, {"a": b"\xff"}]}
    for name in ("q", NON_ASCII):
        vhost.declare_queue(QueueDeclaration(name, arguments, is_durable=True))
    queue, other = vhost.queues["q"], vhost.queues[NON_ASCII]
    vhost.bind(vhost.exchanges["e"], queue, OCTETS[:255], {})
    vhost.bind(vhost.exchanges["h"], other, "", {"x-match": "any", "n": fields.Long(1), "s": "ü", "t": {"deep": True}})
    vhost.bind(vhost.exchanges["e"], vhost.exchanges[NON_ASCII], NON_ASCII, {"a": "b"})
    vhost.bind(vhost.exchanges["amq.topic"], queue, "#", {})
    vhost.bind(vhost.exchanges["auto"], queue, "", {})


def declare_users(broker: Broker) -> None:
    broker.add_vhost("v ü")
    broker.vhosts["v ü"].limits.set("max-queues", 7)
    user = broker.users.add("ü", "secret", tags=("monitoring", "impersonator"))
    broker.users.set_permission(user, "/", Permission("^a", "b$", ""))
    broker.users.set_permission(user, "v ü", Permission())
    broker.users.set_topic_permission(user, "/", "amq.topic", TopicPermission("w", "r"))
    broker.users.set_limit(user, "max-channels", 3)
    definition = {"max-length": 9, "dead-letter-exchange": "ü", "overflow": "reject-publish"}
    broker.vhosts["/"].policies.set(Policy("p", "^q", definition, 4, "queues"))
    broker.vhosts["/"].operator_policies.set(Policy("o", ".*", {"expires": 1000_000}, -1, "queues"))


def snapshot(broker: Broker) -> dict[str, object]:
    """All that a broker knows but messages, to be compared."""
    return {
        "users": {
            name: (user.password_hash, user.tags, user.permissions, user.topic_permissions, dict(user.limits.given))
            for name, user in broker.users.items()
        },
        "vhosts": {name: dict(vhost.limits.given) for name, vhost in broker.vhosts.items()},
        "policies": {
            name: [list(vhost.policies), list(vhost.operator_policies)] for name, vhost in broker.vhosts.items()
        },
        "exchanges": sorted(
            (
                vhost.name,
                e.name,
                e.type,
                e.is_durable,
                e.is_auto_delete,
                e.is_internal,
                fields.encode_table(e.arguments),
            )
            for vhost in broker.vhosts.values()
            for e in vhost.exchanges.values()
        ),
        "queues": sorted(
            (vhost.name, q.name, q.is_auto_delete, fields.encode_table(q.arguments), str(q.settings))
            for vhost in broker.vhosts.values()
            for q in vhost.queues.values()
        ),
        "bindings": sorted(
            (vhost.name, e.name, str(b.destination), b.routing_key, fields.encode_table(b.arguments))
            for vhost in broker.vhosts.values()
            for e in vhost.exchanges.values()
            for b in e.bindings.values()
        ),
    }


@pytest.mark.parametrize("declare", [declare_all, declare_users], ids=["topology", "users and policies"])
def test_definitions_are_as_they_were(disk: Disk, declare: Callable[[Broker], None]) -> None:
    empty = snapshot(disk.broker)
    declare(disk.broker)
    before = snapshot(disk.broker)
    assert before != empty
    disk.restart()
    assert not disk.was_empty
    assert snapshot(disk.broker) == before


def test_deleted_objects_stay_deleted(disk: Disk) -> None:
    empty = snapshot(disk.broker)
    declare_all(disk.broker)
    declare_users(disk.broker)
    disk.restart()
    vhost = disk.broker.vhosts["/"]
    for queue in list(vhost.queues.values()):
        vhost.remove_queue(queue)
    for name in ("e", "h", NON_ASCII):
        vhost.delete_exchange(name, if_unused=False)
    vhost.policies.clear("p")
    vhost.operator_policies.clear("o")
    disk.broker.delete_vhost("v ü")
    disk.broker.users.delete("ü")
    disk.restart()
    assert snapshot(disk.broker) == empty


def test_a_replaced_user_does_not_get_the_old_permissions_back(disk: Disk) -> None:
    declare_users(disk.broker)
    disk.broker.users.add("ü", "other")
    disk.restart()
    user = disk.broker.users["ü"]
    assert (user.permissions, user.topic_permissions) == ({}, {})
    assert user.accepts(b"other")


def test_the_first_user_is_only_created_in_an_empty_store(disk: Disk) -> None:
    disk.broker.users.change_password(disk.broker.users["guest"], "changed")
    disk.restart()
    assert disk.broker.users["guest"].accepts(b"changed")
    disk.broker.users.delete("guest")
    disk.restart()
    assert list(disk.broker.users) == []


def test_transient_objects_are_gone_after_a_restart(disk: Disk) -> None:
    peer = disk.lab.connect()
    peer.call(commands.Exchange.Declare(exchange="e", exchange_type="fanout"))
    peer.declare("transient")
    peer.declare("exclusive", durable=True, exclusive=True)
    peer.declare("durable", durable=True)
    for queue in ("transient", "durable"):
        peer.call(commands.Queue.Bind(queue=queue, exchange="e"))
        peer.call(commands.Queue.Bind(queue=queue, exchange="amq.fanout"))
    peer.publish("durable", b"transient")
    disk.restart()
    vhost = disk.broker.vhosts["/"]
    assert list(vhost.queues) == ["durable"]
    assert "e" not in vhost.exchanges
    assert [binding.destination.name for binding in vhost.exchanges["amq.fanout"].bindings.values()] == ["durable"]
    assert vhost.queues["durable"].ready_count == 0


def get_all(peer: Peer, queue: str = "q") -> list[tuple[bytes, bool]]:
    """Bodies and redelivered flags."""
    found = []
    while (got := peer.get(queue)) is not None:
        found.append((got[1].body, got[0].redelivered))
    return found


def test_exchanges_of_all_types_come_back(disk: Disk) -> None:
    vhost = disk.broker.vhosts["/"]
    for kind in EXCHANGE_TYPES:
        arguments: fields.Table = {"x-delayed-type": "direct"} if kind == "x-delayed-message" else {}
        if kind == "x-message-deduplication":
            arguments = {"x-cache-size": 10, "x-cache-persistence": "disk"}
        vhost.declare_exchange(ExchangeDeclaration(kind, kind, arguments, is_durable=True))
    before = snapshot(disk.broker)
    disk.restart()
    assert snapshot(disk.broker) == before


def test_messages_come_back_in_order_and_say_whether_they_were_delivered(disk: Disk) -> None:
    peer = disk.lab.connect()
    peer.declare("q", durable=True)
    for number in range(5):
        peer.publish("q", b"%d" % number, delivery_mode=2)
    peer.get("q", no_ack=False)
    peer.get("q", no_ack=False)
    peer.send(commands.Basic.Ack(1))
    assert get_all(disk.restart().connect()) == [(b"1", True), (b"2", False), (b"3", False), (b"4", False)]
    assert get_all(disk.restart().connect()) == []


def test_a_message_expires_at_its_time_whenever_the_broker_restarts(disk: Disk) -> None:
    peer = disk.lab.connect()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.declare("q", durable=True, arguments=arguments)
    peer.declare("dead", durable=True)
    peer.publish("q", b"soon", delivery_mode=2, expiration="1000")
    peer.publish("q", b"later", delivery_mode=2, expiration="5000")
    lab = disk.restart(2000)
    vhost = lab.broker.vhosts["/"]
    assert (vhost.queues["q"].ready_count, vhost.queues["dead"].ready_count) == (1, 1)
    lab.now += 2999
    lab.broker.tick(lab.now)
    assert vhost.queues["q"].ready_count == 1
    lab.now += 1
    lab.broker.tick(lab.now)
    assert (vhost.queues["q"].ready_count, vhost.queues["dead"].ready_count) == (0, 2)
    disk.restart()
    assert get_all(disk.lab.connect(), "dead") == [(b"soon", False), (b"later", False)]


def test_an_unacked_message_expires_while_the_broker_is_down(disk: Disk) -> None:
    peer = disk.lab.connect()
    peer.declare("q", durable=True, arguments={"x-message-ttl": 1000})
    peer.consume("q")
    peer.publish("q", b"gone", delivery_mode=2)
    assert disk.restart(1000).broker.vhosts["/"].queues["q"].ready_count == 0


def test_the_history_of_a_dead_message_goes_on(disk: Disk) -> None:
    peer = disk.lab.connect()
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    peer.declare("q", durable=True, arguments=back)
    peer.publish("q", b"m", delivery_mode=2)
    for count in range(1, 4):
        got = peer.get("q", no_ack=False)
        assert got is not None
        peer.send(commands.Basic.Reject(got[0].delivery_tag, requeue=False))
        peer = disk.restart().connect()
        got = peer.get("q", no_ack=False)
        assert got is not None
        [death] = deaths_in(got[1].properties)
        assert (death["queue"], death["reason"], death["count"]) == ("q", "rejected", count)
        peer.send(commands.Basic.Nack(present(got[0].delivery_tag), requeue=True))


def test_priorities_keep_their_order(disk: Disk) -> None:
    peer = disk.lab.connect()
    peer.declare("q", durable=True, arguments={"x-max-priority": 3})
    for number, priority in enumerate([1, 3, 2, 3, 0]):
        peer.publish("q", b"%d" % number, delivery_mode=2, priority=priority)
    assert [body for body, _ in get_all(disk.restart().connect())] == [b"1", b"3", b"2", b"0", b"4"]


def test_a_delayed_message_comes_at_its_time(disk: Disk) -> None:
    peer = disk.lab.connect()
    arguments: FieldTable = {"x-delayed-type": "direct"}
    peer.call(
        commands.Exchange.Declare(exchange="d", exchange_type="x-delayed-message", durable=True, arguments=arguments)
    )
    peer.declare("q", durable=True)
    peer.call(commands.Queue.Bind(queue="q", exchange="d", routing_key="k"))
    for body, delay in ((b"late", 5000), (b"soon", 1000)):
        peer.publish("k", body, exchange="d", delivery_mode=2, headers={"x-delay": delay})
    lab = disk.restart(500)
    lab.broker.tick(lab.now)
    assert get_all(lab.connect()) == []
    lab = disk.restart(500)
    lab.broker.tick(lab.now)
    assert get_all(lab.connect()) == [(b"soon", False)]
    lab = disk.restart(10_000)
    lab.broker.tick(lab.now)
    assert get_all(lab.connect()) == [(b"late", False)]
    assert get_all(disk.restart().connect()) == []


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_delayed_message_lives_as_long_as_it_says_from_when_it_is_due(disk: Disk, is_restarted: bool) -> None:
    peer = disk.lab.connect()
    arguments: FieldTable = {"x-delayed-type": "fanout"}
    peer.call(
        commands.Exchange.Declare(exchange="d", exchange_type="x-delayed-message", durable=True, arguments=arguments)
    )
    peer.declare("q", durable=True)
    peer.call(commands.Queue.Bind(queue="q", exchange="d"))
    for body in (b"pulled", b"expired"):
        peer.publish("", body, exchange="d", expiration="100", headers={"x-delay": 1000})
    lab = disk.restart() if is_restarted else disk.lab
    lab.advance(1099)
    assert lab.connect().get("q", no_ack=True) is not None
    lab.advance(1)
    assert get_all(lab.connect()) == []


def test_a_quorum_queue_counts_deliveries_on(disk: Disk) -> None:
    peer = disk.lab.connect()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.publish("q", b"m")
    for count in range(1, 4):
        got = peer.get("q", no_ack=False)
        assert got is not None
        peer = disk.restart().connect()
        got = peer.get("q", no_ack=False)
        assert got is not None
        assert got[0].redelivered
        assert (got[1].properties.headers or {})["x-delivery-count"] == count
        peer.send(commands.Basic.Nack(present(got[0].delivery_tag), requeue=True))


def test_purged_messages_stay_away_before_they_are_deleted(disk: Disk) -> None:
    """Deletion on the disk takes several batches; here the broker ends after the first."""
    body_bytes = BUFFER_BYTES_MAX // GARBAGE_BATCH
    peer = disk.lab.connect()
    peer.declare("q", durable=True)
    for number in range(3 * GARBAGE_BATCH):
        peer.publish("q", b"%d" % number + bytes(body_bytes), delivery_mode=2)
    peer = disk.restart().connect()
    assert peer.get("q", no_ack=False) is not None
    peer.call(commands.Queue.Purge(queue="q"))
    peer.publish("q", b"new", delivery_mode=2)
    peer = disk.restart().connect()
    assert disk.store is not None
    assert disk.store.journal.has_work, "something is still to be deleted"
    assert peer.declare("q", passive=True).message_count == 2
    assert [body[:3] for body, _ in get_all(peer)] == [b"0\0\0", b"new"]


@pytest.mark.parametrize("batches", [1, 3])
def test_a_deletion_that_a_kill_interrupts_is_finished_by_the_restart(disk: Disk, batches: int) -> None:
    vhost = disk.lab.vhost
    queue = vhost.declare_queue(QueueDeclaration("q", {}, is_durable=True))
    other = vhost.declare_queue(QueueDeclaration("other", {}, is_durable=True))
    exchange = vhost.declare_exchange(ExchangeDeclaration("x", "topic", {}, is_durable=True, is_auto_delete=True))
    for number in range(5 * PORTION_STEPS):
        vhost.bind(exchange, queue, f"k.{number}", {})
    vhost.bind(vhost.exchanges["amq.topic"], other, "k", {})
    disk.restart()
    queue = disk.lab.vhost.queues["q"]
    assert len(queue.incoming) == 5 * PORTION_STEPS
    disk.lab.vhost.remove_queue(queue)
    for _ in range(batches - 1):
        disk.broker.drain_on()
    assert disk.store is not None
    commit(disk.store.environment, disk.store.journal)
    assert len(queue.incoming) == (5 - batches) * PORTION_STEPS
    disk.store.abandon()
    disk.store = None
    disk.restart()
    vhost = disk.lab.vhost
    assert (set(vhost.queues), "x" in vhost.exchanges) == ({"other"}, False)
    assert len(vhost.queues["other"].incoming) == 1
    disk.restart()
    assert disk.store is not None
    assert [key[4] for key, _ in disk.store.journal.definitions_of("binding")] == ["other"]
    vhost = disk.lab.vhost
    again = vhost.declare_queue(QueueDeclaration("q", {}, is_durable=True))
    assert (again.incoming, again.ready_count) == ({}, 0)


def test_duplicates_are_known_after_a_restart(disk: Disk) -> None:
    peer = disk.lab.connect()
    cache: FieldTable = {"x-cache-size": 5, "x-cache-persistence": "disk"}
    kind = "x-message-deduplication"
    peer.call(commands.Exchange.Declare(exchange="x", exchange_type=kind, durable=True, arguments=cache))
    peer.declare("q", durable=True, arguments={"x-message-deduplication": True})
    peer.declare("routed", durable=True)
    peer.call(commands.Queue.Bind(queue="routed", exchange="x"))
    for body in (b"1", b"2", b"3"):
        for exchange in ("", "x"):
            headers = {"x-deduplication-header": "a"}
            peer.publish("q", body, exchange=exchange, delivery_mode=2, headers=headers)
        # One is unacked when the broker ends.
        peer.get("q", no_ack=False)
        peer = disk.restart().connect()
    assert get_all(peer) == [(b"1", True)]
    assert get_all(peer, "routed") == [(b"1", False)]
