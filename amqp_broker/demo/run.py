"""One publisher in one storm: a client of pika at a broker, over a socket, in one loop; faults are the broker's own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel
from pika.adapters.select_connection import IOLoop

from amqp_broker.broker.faults import Rule
from amqp_broker.demo.figures import figures
from amqp_broker.demo.proof import Proof, prove
from amqp_broker.demo.publisher import Publisher
from amqp_broker.demo.storm import PATIENCE_MS, Gust
from amqp_broker.demo.strategies import Strategy
from amqp_broker.testing import EmbeddedBroker

RECONNECT_S: Final = 0.05
TICK_S: Final = 0.025
# Publishes between two looks at the socket.
BURST_MAX: Final = 20
# In how long the broker has heard what was published.
HEARD_MS: Final = 100
# How long what was published last may be on its way, for who does not wait for answers.
SETTLE_MS: Final = 1000
ATTEMPT: Final = "attempt"


def now_ms() -> float:
    return time.monotonic() * 1000


class Struck:
    """A gust that has come: its fault, or the restart that is under way."""

    def __init__(self, gust: Gust, cause: Rule | Future[None]) -> None:
        self.gust = gust
        self._cause = cause

    @property
    def hits(self) -> int:
        """How often it has struck."""
        return self._cause.hits if isinstance(self._cause, Rule) else int(self._cause.done())

    @property
    def is_over(self) -> bool:
        return self.hits >= self.gust.times


class Run:
    """A strategy's publisher with a storm around it. `run` returns when it is done; `figures()` tell how far it is.

    `rate` is how many publishes there are in a second at most (0: as many as there can be). `on_tick` is called with
    the figures again and again, and with each gust when it comes.
    """

    def __init__(
        self,
        broker: EmbeddedBroker,
        strategy: Strategy,
        gusts: list[Gust],
        messages: int,
        window: int,
        rate: int,
        on_tick: Callable[[dict[str, Any]], None],
        on_restart: Callable[[], None],
    ) -> None:
        self.broker = broker
        self.strategy = strategy
        self.gusts = gusts
        self.rate = rate
        self.publisher = Publisher(strategy, messages, window, PATIENCE_MS)
        self.struck: list[Struck] = []
        self.connects = 0
        self.queue = f"demo.{strategy.name}"
        # It is the same before and after a restart.
        self._url = broker.url
        self._on_tick, self._on_restart = on_tick, on_restart
        self._connection: pika.SelectConnection | None = None
        self._channel: Any = None
        self._is_ready = self._is_pumping = self._is_pump_due = False
        self._restarts = ThreadPoolExecutor(1, "restart")
        self._restart: Future[None] | None = None
        self._began_ms = self._ended_ms = self._sent_ms = 0.0

    def run(self) -> Proof:
        """Publish all, through the whole storm, and compare what the publisher knows with what is in the queue."""
        self._loop = IOLoop()
        self._began_ms = now_ms()
        try:
            self._connect()
            self._tick()
            self._loop.start()
        finally:
            self._restarts.shutdown()
            if self.broker.is_running:
                self.broker.faults.clear()
            self._loop.close()
        self._ended_ms = now_ms()
        return prove(self.strategy, self.publisher.messages, self.publisher.ledger, self._queued())

    @property
    def elapsed_ms(self) -> float:
        return (self._ended_ms or now_ms()) - self._began_ms

    @property
    def state(self) -> str:
        """What the connection is: "connecting", "open", "blocked" or "closed"."""
        if self._ended_ms:
            return "closed"
        if not self._is_ready:
            return "connecting"
        return "blocked" if self.publisher.is_blocked else "open"

    def figures(self) -> dict[str, Any]:
        """All that is shown of it."""
        return figures(
            self.publisher,
            [(one.gust, one.hits) for one in self.struck],
            self.gusts[len(self.struck) :],
            self.state,
            self.connects,
            self.elapsed_ms,
        )

    # The connection

    def _connect(self) -> None:
        parameters = pika.URLParameters(self._url)
        parameters.client_properties = {"connection_name": f"demo {self.strategy.name}"}
        self._connection = pika.SelectConnection(
            parameters,
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_closed,
            on_close_callback=self._on_closed,
            custom_ioloop=self._loop,
        )

    def _on_open(self, connection: pika.SelectConnection) -> None:
        self.connects += 1
        connection.add_on_connection_blocked_callback(lambda *_: self.publisher.blocked())
        connection.add_on_connection_unblocked_callback(lambda *_: self._on_unblocked())
        self._open_channel()

    def _open_channel(self) -> None:
        assert self._connection is not None
        self._connection.channel(on_open_callback=self._on_channel)

    def _on_channel(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._on_channel_closed)
        channel.add_on_return_callback(self._on_return)
        channel.queue_declare(
            self.queue,
            durable=True,
            callback=lambda _: channel.confirm_delivery(self._on_answer, callback=lambda _: self._on_confirming()),
        )

    def _on_confirming(self) -> None:
        self._is_ready = True
        self._pump()

    def _on_channel_closed(self, channel: Any, reason: Exception) -> None:
        if channel is not self._channel:
            return
        self._lose_channel()
        if self._connection is not None and self._connection.is_open:
            self._open_channel()

    def _on_closed(self, connection: pika.SelectConnection, reason: Exception) -> None:
        if connection is not self._connection:
            return
        self._lose_channel()
        self._connection = None
        if self._is_over():
            self._loop.stop()
        else:
            self._loop.call_later(RECONNECT_S, self._connect)

    def _lose_channel(self) -> None:
        self._channel, self._is_ready = None, False
        self.publisher.disconnected(now_ms())

    # What the broker says

    def _on_answer(self, frame: Any) -> None:
        tag, multiple = frame.method.delivery_tag, frame.method.multiple
        settle = self.publisher.acked if frame.method.NAME == "Basic.Ack" else self.publisher.nacked
        settle(tag, multiple, now_ms())
        self._pump()

    def _on_return(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.publisher.returned(int(properties.message_id), properties.headers[ATTEMPT], now_ms())

    def _on_unblocked(self) -> None:
        self.publisher.unblocked(now_ms())
        self._pump()

    # Publishing

    def _pump(self) -> None:
        """Publish what may be published, but let the socket have its turn."""
        if self._is_pumping:
            return
        # pika may find out that the connection is gone while it publishes, and say so by a callback or an exception.
        self._is_pumping = True
        try:
            for _ in range(BURST_MAX):
                if not self._is_ready or not self._is_in_time() or not self._strike():
                    return
                now = now_ms()
                given = self.publisher.next(now)
                if given is None:
                    return
                self._publish(*given)
        except (pika.exceptions.ChannelWrongStateError, pika.exceptions.ConnectionWrongStateError):
            return
        finally:
            self._is_pumping = False
        if not self._is_pump_due:
            self._is_pump_due = True
            self._loop.call_later(0, self._pump_on)

    def _pump_on(self) -> None:
        self._is_pump_due = False
        self._pump()

    def _is_in_time(self) -> bool:
        """Whether the rate lets another one be published; the next tick asks again."""
        return not self.rate or self.publisher.ledger.sent_count < self.elapsed_ms * self.rate / 1000 + 1

    def _publish(self, number: int, attempt: int) -> None:
        self._sent_ms = now_ms()
        properties = pika.BasicProperties(message_id=str(number), headers={ATTEMPT: attempt}, delivery_mode=2)
        self._channel.basic_publish("", self.queue, b"message %d" % number, properties, mandatory=True)

    # The storm

    def _strike(self) -> bool:
        """Let the gust come whose message is next, as soon as the one before it is over; returns whether to publish.

        Nobody publishes beyond a gust while the broker is away, or the connection blocked, or the gust before it not
        over: who does not notice would miss the rest of the storm.
        """
        if len(self.struck) == len(self.gusts) or self.publisher.started_count + 1 < self.gusts[len(self.struck)].at:
            return True
        if self.publisher.is_blocked or self._is_restarting():
            return False
        if not all(one.is_over for one in self.struck[-1:]):
            # The broker may not have heard what it is to strike; if it has, it takes more messages.
            return now_ms() - self._sent_ms > HEARD_MS
        gust = self.gusts[len(self.struck)]
        if gust.rule is None:
            self._restart = self._restarts.submit(self._kill_and_start)
            self.struck.append(Struck(gust, self._restart))
        else:
            self.struck.append(Struck(gust, self.broker.faults.add(**{"vhost": "/", **gust.rule})))
        self._on_tick(self.figures())
        return True

    def _is_restarting(self) -> bool:
        return self._restart is not None and not self._restart.done()

    def _kill_and_start(self) -> None:
        self.broker.restart(kill=True)
        self._on_restart()

    # Time

    def _tick(self) -> None:
        if self._restart is not None and self._restart.done():
            self._restart.result()  # raises what went wrong
        self.publisher.give_up_late(now_ms())
        self._on_tick(self.figures())
        if self._is_over() and self._is_ready:
            self._is_ready = False
            assert self._connection is not None
            self._connection.close()
        else:
            self._pump()
        self._loop.call_later(TICK_S, self._tick)

    def _is_over(self) -> bool:
        if not self.publisher.is_done or self._is_restarting():
            return False
        # Who does not look at answers would be gone now; for the figures we wait for what is still said to it.
        latest = max((flight.sent_ms for flight in self.publisher.in_flight.values()), default=0.0)
        return self.strategy.resends or not self.publisher.in_flight or now_ms() - latest > SETTLE_MS

    # The proof

    def _queued(self) -> Counter[tuple[int, int]]:
        """What is in the queue: (number, attempt) of each message, taken out by a client."""
        found: Counter[tuple[int, int]] = Counter()
        with pika.BlockingConnection(pika.URLParameters(self._url)) as connection:
            channel: BlockingChannel = connection.channel()
            count = channel.queue_declare(self.queue, durable=True).method.message_count
            if count:
                for at, (_, properties, _) in enumerate(channel.consume(self.queue, auto_ack=True), 1):
                    found[int(properties.message_id), properties.headers[ATTEMPT]] += 1
                    if at == count:
                        break
        return found
