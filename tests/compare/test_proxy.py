"""The proxy over sockets; the upstream is another amqp-broker, which differs only as the test decides."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pamqp import commands

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.compare import proxy as module
from amqp_broker.server.server import Server
from compat.certificates import Issuer
from compat.waiting import wait_until
from tests.client import Client
from tests.compare.proxy_run import RunningProxy
from tests.present import present
from tests.running import RunningServer


@pytest.fixture
def upstream() -> Iterator[RunningServer]:
    with RunningServer() as running:
        yield running


def work(client: Client, queue: str, count: int, message: bytes = b"m") -> None:
    """Publish with confirms, consume and ack."""
    client.declare(queue)
    client.call(commands.Confirm.Select())
    for _ in range(count):
        client.publish(queue, message)
    confirmed = 0
    while confirmed < count:
        ack = client.expect(commands.Basic.Ack)
        confirmed = present(ack.delivery_tag)
    client.consume(queue)
    for _ in range(count):
        delivered, body = client.expect_delivery()
        assert body == message
        client.send(commands.Basic.Ack(present(delivered.delivery_tag)))
    client.sync()


def leave(client: Client) -> None:
    client.call(commands.Connection.Close(200, "bye", 0, 0), channel=0)
    client.close()


def test_equal_brokers_have_no_differences(upstream: RunningServer) -> None:
    with RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open()
        work(client, "q", 50)
        leave(client)
    # Two to open, declare, select, consume, qos, bye, and each message twice.
    assert (proxy.report.compared_count, proxy.found) == (107, [])
    assert proxy.report.connections_count == 1


def test_a_fault_of_the_local_broker_is_reported_with_its_place(upstream: RunningServer) -> None:
    def fault(server: Server) -> None:
        server.broker.faults.add(Rule("confirm_nack", routing_key="q", after=2, times=1))

    with RunningProxy(upstream, fault) as proxy:
        client = Client(proxy.port).open()
        client.declare("q")
        client.call(commands.Confirm.Select())
        for _ in range(5):
            client.publish("q", b"m")
            client.expect(commands.Basic.Ack)
        proxy.until(lambda: proxy.report.differences)
    (difference,) = proxy.report.differences
    assert (difference.connection, difference.channel) == (1, 1)
    assert difference.asked == "basic.publish routing_key='q'"
    assert (difference.upstream, difference.amqp_broker) == (
        "basic.ack delivery_tag=3",
        "basic.nack delivery_tag=3 multiple requeue",
    )


def test_a_queue_with_other_properties_is_reported_and_the_client_is_undisturbed(upstream: RunningServer) -> None:
    with RunningProxy(upstream) as proxy:
        with Client(proxy.ask(lambda server: server.ports["amqp"])).open() as beside:
            beside.declare("q", durable=True)
        client = Client(proxy.port).open()
        work(client, "q", 3)
        client.send(commands.Channel.Open(), channel=2)
        client.expect(commands.Channel.OpenOk, channel=2)
    ((said, local),) = proxy.found
    assert said.startswith("queue.declare-ok queue='q'")
    assert local.startswith("channel.close reply_code=406")


def test_a_large_message_is_compared(upstream: RunningServer) -> None:
    with RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open()
        work(client, "q", 2, bytes(4 * 1024 * 1024))
        leave(client)
    assert proxy.found == []


def test_frames_in_tiny_pieces_are_compared(upstream: RunningServer) -> None:
    class SlowClient(Client):
        def send_bytes(self, data: bytes) -> None:
            for start in range(0, len(data), 3):
                super().send_bytes(data[start : start + 3])

    with RunningProxy(upstream) as proxy:
        client = SlowClient(proxy.port).open()
        work(client, "q", 3)
        leave(client)
    assert proxy.found == []


def test_many_concurrent_clients_of_one_queue_have_no_differences(upstream: RunningServer) -> None:
    count = 300
    with RunningProxy(upstream) as proxy:
        got: list[bytes] = []

        def consume() -> None:
            with Client(proxy.port).open() as client:
                client.call(commands.Basic.Qos(prefetch_count=7))
                client.consume("shared")
                while True:
                    delivered, body = client.expect_delivery()
                    client.send(commands.Basic.Ack(present(delivered.delivery_tag)))
                    if body == b"end":
                        return
                    got.append(body)

        def publish(number: int) -> None:
            client = Client(proxy.port).open()
            client.call(commands.Confirm.Select())
            for one in range(count):
                client.publish("shared", b"%d-%d" % (number, one))
            confirmed = 0
            while confirmed < count:
                confirmed = client.expect(commands.Basic.Ack).delivery_tag
            leave(client)

        with Client(proxy.port).open() as first:
            first.declare("shared")
        consumers = [threading.Thread(target=consume) for _ in range(4)]
        publishers = [threading.Thread(target=publish, args=(number,)) for number in range(4)]
        for thread in (*consumers, *publishers):
            thread.start()
        wait_until(lambda: len(got) >= 4 * count)
        with Client(proxy.port).open() as last:
            for _ in consumers:
                last.publish("shared", b"end")
            last.sync()
        for thread in (*consumers, *publishers):
            thread.join(20)
    assert sorted(got) == sorted(b"%d-%d" % (number, one) for number in range(4) for one in range(count))
    assert proxy.found == []
    assert proxy.report.connections_count == 10


def test_a_client_that_does_not_read_delays_only_itself(upstream: RunningServer) -> None:
    with RunningProxy(upstream) as proxy:
        slow = Client(proxy.port, receive_bytes=4096).open()
        slow.declare("q")
        slow.consume("q", no_ack=True)
        with Client(proxy.port).open() as client:
            for _ in range(400):
                client.publish("q", bytes(100_000))
            client.sync()
            work(client, "other", 20)
        for _ in range(400):
            slow.expect_delivery()
        leave(slow)
    assert proxy.found == []


def test_a_wrong_password_is_refused_by_both(upstream: RunningServer) -> None:
    with RunningProxy(upstream) as proxy:
        client = Client(proxy.port)
        with pytest.raises(AssertionError):
            client.log_in("guest", "wrong")
        client.close()
        proxy.until(lambda: not proxy.proxy.links)
    assert proxy.found == []


def test_users_and_vhosts_of_the_upstream_are_created_on_login(upstream: RunningServer) -> None:
    def prepare(server: Server) -> None:
        from amqp_broker.broker.admin.access import Permission

        broker = server.broker
        broker.add_vhost("shop")
        broker.users.set_permission(broker.users.add("anna", "secret"), "shop", Permission())

    upstream.ask(prepare)
    with RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open("anna", "secret", "shop")
        work(client, "q", 1)
        assert proxy.ask(lambda server: list(server.broker.vhosts["shop"].queues)) == ["q"]
        leave(client)
    assert proxy.found == []


def test_an_upstream_that_dies_is_noted_and_is_not_a_difference() -> None:
    with RunningServer() as upstream, RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open()
        client.declare("q")
        upstream._host.stop(True)
        assert client.expect_end() == b""
        proxy.until(lambda: proxy.report.notes)
        turned_away = Client(proxy.port)
        assert turned_away.expect_end() == b""
    assert proxy.found == []
    assert proxy.report.notes[0] == "connection 1: the upstream closed the socket without notice"
    assert proxy.report.notes[1].startswith("a client was disconnected: cannot connect to amqp://")


def test_messages_of_a_lost_client_go_to_the_next_at_both_brokers(upstream: RunningServer) -> None:
    with RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open()
        client.declare("q")
        client.publish("q", b"m")
        client.consume("q")
        client.expect_delivery()
        client.reset()
        proxy.until(lambda: not proxy.proxy.links)
        upstream.until(lambda server: not server.broker.connections)
        again = Client(proxy.port).open()
        again.consume("q")
        delivered, _ = again.expect_delivery()
        assert delivered.redelivered
        again.send(commands.Basic.Ack(present(delivered.delivery_tag)))
        again.sync()
        leave(again)
        assert proxy.ask(lambda server: server.broker.vhosts["/"].queues["q"].unacked_count) == 0
    assert proxy.found == []


def by_connection_close(client: Client) -> None:
    leave(client)


def by_channel_close(client: Client) -> None:
    client.call(commands.Channel.Close(200, "bye", 0, 0))
    leave(client)


def by_cancel(client: Client) -> None:
    client.call(commands.Basic.Cancel("c"))
    leave(client)


def without_a_close(client: Client) -> None:
    client.close()


def by_reset(client: Client) -> None:
    client.reset()


WAYS = [by_connection_close, by_channel_close, by_cancel, without_a_close, by_reset]
NEVER = Rule("delay_delivery", queue="q", delay_ms=3_600_000)


@pytest.mark.parametrize("way", WAYS)
def test_a_surplus_is_reported_however_soon_the_client_leaves(
    upstream: RunningServer, monkeypatch: pytest.MonkeyPatch, way: Callable[[Client], None]
) -> None:
    monkeypatch.setattr(module, "PATIENCE_MS", 200)
    upstream.ask(lambda server: server.broker.faults.add(replace(NEVER)))
    with RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open()
        client.declare("q")
        client.call(commands.Basic.Consume(queue="q", consumer_tag="c"))
        client.publish("q", b"m")
        client.sync()
        way(client)
        proxy.until(lambda: not proxy.proxy.links)
    [(there, here)] = proxy.found
    assert (there, here.startswith("basic.deliver")) == ("has not delivered this message", True)


@pytest.mark.parametrize("way", WAYS)
def test_a_missing_delivery_is_reported_however_soon_the_client_leaves(
    upstream: RunningServer, monkeypatch: pytest.MonkeyPatch, way: Callable[[Client], None]
) -> None:
    monkeypatch.setattr(module, "PATIENCE_MS", 200)
    with RunningProxy(upstream, lambda server: server.broker.faults.add(replace(NEVER))) as proxy:
        client = Client(proxy.port).open()
        client.declare("q")
        client.call(commands.Basic.Consume(queue="q", consumer_tag="c"))
        client.publish("q", b"m")
        client.expect_delivery()
        way(client)
        proxy.until(lambda: not proxy.proxy.links)
        # The next consumer gets the message again, which hides nothing.
        again = Client(proxy.port).open()
        again.consume("q")
        again.expect_delivery()
        leave(again)
    [(there, here)] = proxy.found
    assert (there.startswith("basic.deliver"), here) == (True, "has not delivered this message")


@pytest.mark.parametrize("way", WAYS)
def test_a_client_that_leaves_while_the_upstream_is_slow_makes_no_difference(
    upstream: RunningServer, way: Callable[[Client], None]
) -> None:
    upstream.ask(lambda server: server.broker.faults.add(replace(NEVER, delay_ms=100)))
    with RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open()
        client.declare("q")
        client.call(commands.Basic.Consume(queue="q", consumer_tag="c", no_ack=True))
        client.publish("q", b"m")
        client.sync()
        if way in (without_a_close, by_reset):
            way(client)
        else:
            client.send(commands.Connection.Close(200, "bye", 0, 0), channel=0)
            assert client.expect_delivery()[1] == b"m"
            client.expect(commands.Connection.CloseOk, channel=0)
            client.close()
        proxy.until(lambda: not proxy.proxy.links)
    assert proxy.found == []


def test_the_upstream_answers_octets_that_are_not_amqp(upstream: RunningServer) -> None:
    with RunningProxy(upstream) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), 10) as nonsense:
            nonsense.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert nonsense.recv(8) == b"AMQP\0\0\t\1"
        client = Client(proxy.port).open()
        client.send_bytes(b"\x2a\0\1\0\0\0\0\xce")
        assert client.expect(commands.Connection.Close, channel=0).reply_code == 501
        client.send(commands.Connection.CloseOk(), channel=0)
        client.close()
        work(Client(proxy.port).open(), "q", 3)
    assert proxy.found == []


def test_the_upstream_may_use_tls(tmp_path: Path) -> None:
    served = Issuer(tmp_path).server()
    with RunningServer(
        tls_port=0,
        tls_cert_file=str(served.certificate),
        tls_key_file=str(served.key),
        tls_ca_file=str(served.authority),
    ) as upstream:
        url = f"amqps://guest:guest@localhost:{upstream.server.ports['amqps']}?cacertfile={served.authority}"
        with RunningProxy(url) as proxy:
            client = Client(proxy.port).open()
            work(client, "q", 20, bytes(300_000))
            leave(client)
    assert proxy.found == []


def test_stopping_disconnects_clients(upstream: RunningServer) -> None:
    with RunningProxy(upstream) as proxy:
        client = Client(proxy.port).open()
        started = time.monotonic()
    assert time.monotonic() - started < 5
    assert client.expect_end() == b""
