"""Higher things of kombu: SimpleQueue, ConsumerMixin, RPC with ConsumerProducerMixin, and the pidbox of Celery."""

from __future__ import annotations

import contextlib
import queue as queues
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kombu import Connection, Consumer, Exchange, Message, Queue, uuid
from kombu.mixins import ConsumerMixin, ConsumerProducerMixin
from kombu.pidbox import Mailbox

from compat.brokers import BrokerProcess
from compat.unique_names import unique_name
from compat.waiting import wait_until


def test_simple_queue_puts_gets_and_counts(connection: Connection) -> None:
    with connection.SimpleQueue(unique_name("simple")) as queue:
        queue.put("unwanted")
        wait_until(lambda: len(queue) == 1)
        assert queue.clear() == 1
        for number in range(3):
            queue.put({"number": number}, compression="zlib")
        wait_until(lambda: len(queue) == 3)
        for number in range(3):
            message = queue.get(timeout=15)
            assert message.payload == {"number": number}
            message.ack()
        with pytest.raises(queue.Empty):
            queue.get(timeout=0.1)
        with pytest.raises(queue.Empty):
            queue.get_nowait()


def test_simple_buffer_is_gone_with_its_connection(broker: BrokerProcess, connection: Connection) -> None:
    name = unique_name("buffer")
    with Connection(broker.url) as own, own.SimpleBuffer(name) as buffer:
        buffer.put("volatile")
        assert buffer.get(timeout=15).payload == "volatile"
    with pytest.raises(connection.channel_errors, match="NOT_FOUND"):
        Queue(name)(connection.default_channel).queue_declare(passive=True)


class Worker(ConsumerMixin):
    """Hands the bodies it consumes to a thread-safe queue; stops at the body `stop`."""

    connect_max_retries = 100

    def __init__(self, connection: Connection, queue: Queue) -> None:
        self.connection = connection
        self.queue = queue
        self.bodies: queues.Queue[Any] = queues.Queue()
        self.live: queues.Queue[Connection] = queues.Queue()

    def get_consumers(self, consumer_class: type[Consumer], _channel: Any) -> list[Consumer]:
        return [consumer_class([self.queue], callbacks=[self.on_task], prefetch_count=1)]

    def on_consume_ready(self, connection: Connection, _channel: Any, _consumers: Any, **_options: Any) -> None:
        self.live.put(connection)

    def on_task(self, body: Any, message: Message) -> None:
        message.ack()
        self.should_stop = body == "stop"
        self.bodies.put(body)


def test_consumer_mixin_consumes_and_comes_back_after_its_connection_is_lost(broker: BrokerProcess) -> None:
    name = unique_name("mixin")
    queue = Queue(name, Exchange(name), routing_key=name)
    with Connection(broker.url) as connection:
        worker = Worker(connection, queue)
        thread = threading.Thread(target=worker.run)
        thread.start()
        producer = Connection(broker.url).Producer(exchange=queue.exchange, routing_key=name)
        first = worker.live.get(timeout=15)
        producer.publish("first")
        assert worker.bodies.get(timeout=15) == "first"
        first.connection.transport.sock.shutdown(2)
        worker.live.get(timeout=15)
        producer.publish("second")
        assert worker.bodies.get(timeout=15) == "second"
        producer.publish("stop")
        thread.join(timeout=15)
        assert not thread.is_alive()


class Squares(ConsumerProducerMixin):
    """An RPC server that squares numbers."""

    def __init__(self, connection: Connection, queue: Queue) -> None:
        self.connection = connection
        self.queue = queue

    def get_consumers(self, consumer_class: type[Consumer], _channel: Any) -> list[Consumer]:
        return [consumer_class([self.queue], on_message=self.on_request, accept={"json"}, prefetch_count=1)]

    def on_request(self, message: Message) -> None:
        number = message.payload["number"]
        self.producer.publish(
            {"result": number * number},
            exchange="",
            routing_key=message.properties["reply_to"],
            correlation_id=message.properties["correlation_id"],
            serializer="json",
            retry=True,
        )
        message.ack()


@pytest.fixture
def squares(broker: BrokerProcess) -> Iterator[str]:
    name = unique_name("squares")
    with Connection(broker.url) as connection:
        server = Squares(connection, Queue(name, exclusive=False, auto_delete=True))
        thread = threading.Thread(target=server.run)
        thread.start()
        yield name
        server.should_stop = True
        thread.join()


def test_rpc_through_an_exclusive_callback_queue(connection: Connection, squares: str) -> None:
    replies: dict[str, int] = {}
    callback_queue = Queue(uuid(), exclusive=True, auto_delete=True)

    def on_reply(message: Message) -> None:
        replies[message.properties["correlation_id"]] = message.payload["result"]

    with connection.Consumer(callback_queue, on_message=on_reply, no_ack=True):
        calls = {uuid(): number for number in range(5)}
        for call, number in calls.items():
            connection.Producer().publish(
                {"number": number},
                exchange="",
                routing_key=squares,
                declare=[Queue(squares, auto_delete=True)],
                reply_to=callback_queue.name,
                correlation_id=call,
            )
        while len(replies) < 5:
            connection.drain_events(timeout=15)
    assert replies == {call: number**2 for call, number in calls.items()}


@pytest.fixture
def nodes(broker: BrokerProcess) -> Iterator[Mailbox]:
    """A mailbox with two nodes that listen, each on a connection of its own."""
    mailbox = Mailbox(unique_name("app"), type="fanout")
    stop = threading.Event()
    ready = threading.Barrier(3, timeout=15)

    def serve(hostname: str) -> None:
        with Connection(broker.url) as connection:
            bound = mailbox(connection)
            node = bound.Node(hostname, state={"greeted": 0}, channel=connection.default_channel)

            @node.handler
            def greet(state: dict[str, int], name: str) -> str:
                state["greeted"] += 1
                return f"hello {name} from {hostname}"

            @node.handler
            def greeted(state: dict[str, int]) -> int:
                return state["greeted"]

            node.listen()
            ready.wait()
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    connection.drain_events(timeout=0.05)

    threads = [threading.Thread(target=serve, args=(hostname,)) for hostname in ("node1", "node2")]
    for thread in threads:
        thread.start()
    ready.wait()
    yield mailbox
    stop.set()
    for thread in threads:
        thread.join()


def test_mailbox_calls_one_node_or_all_and_gathers_their_replies(connection: Connection, nodes: Mailbox) -> None:
    mailbox = nodes(connection)
    [reply] = mailbox.call(["node2"], "greet", {"name": "you"}, timeout=15)
    assert reply == {"node2": "hello you from node2"}
    mailbox.abcast("greet", {"name": "all"})
    replies = mailbox.multi_call("greeted", timeout=15, limit=2)
    assert sorted(replies, key=str) == [{"node1": 1}, {"node2": 2}]
