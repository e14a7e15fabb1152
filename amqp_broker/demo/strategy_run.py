"""One run of a strategy: a pika client that publishes to a broker while faults occur."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Protocol

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel
from pika.adapters.select_connection import IOLoop

from amqp_broker.broker.lab.fault_rules import Rule
from amqp_broker.demo.fault_plan import PATIENCE_MS, FaultEvent
from amqp_broker.demo.figures import BUCKET_MS, Begun, figures
from amqp_broker.demo.proof import Proof, prove
from amqp_broker.demo.publisher import Publisher
from amqp_broker.demo.strategies import Strategy

RECONNECT_S: Final = 0.05
TICK_S: Final = 0.025
# Publishes between two reads of the socket.
BURST_MAX: Final = 20
# Time for which a strategy waits for the answers that it no longer needs, so that the figures have them.
SETTLE_MS: Final = 1000
# Time after which a stopped run no longer waits for the broker to close the connection.
STOP_MS: Final = 2000
ATTEMPT: Final = "attempt"
# Reasons of repeated publishes.
CHANNEL_CLOSED: Final = "channel closed"
CONNECTION_LOST: Final = "connection lost"


class Stopped(Exception):
    """The run was stopped before its end."""


class DemoFaults(Protocol):
    """The fault rules of a broker."""

    def add(self, action: str, **fields: Any) -> Rule: ...

    def clear(self) -> None: ...


class DemoBroker(Protocol):
    """The broker that a publisher meets."""

    @property
    def url(self) -> str: ...

    @property
    def is_running(self) -> bool: ...

    @property
    def faults(self) -> DemoFaults: ...


def now_ms() -> float:
    return time.monotonic() * 1000


class StartedEvent:
    """An event that has begun: its fault rule, or its restart."""

    def __init__(self, event: FaultEvent, cause: Rule | Future[None], at: int, began_ms: float) -> None:
        self.event = event
        # The message before whose first publish it began. It is a later one than planned after a slow event.
        self.at = at
        # Since the start of the run.
        self.began_ms = began_ms
        self._cause = cause

    @property
    def hits(self) -> int:
        """The number of messages or connections it has hit so far."""
        return self._cause.hits if isinstance(self._cause, Rule) else int(self._cause.done())

    @property
    def is_over(self) -> bool:
        return self.hits >= self.event.times


class StrategyRun:
    """The publisher of a strategy and its plan of faults. `run` returns at the end; `figures` has the progress.

    `rate` limits the publishes per second (0: unlimited). `on_tick` is called with the figures at intervals and at each
    event. `restart` kills and starts the broker, in a thread of its own; a plan without restarts needs none.
    Raise ValueError if one is missing.
    """

    def __init__(
        self,
        broker: DemoBroker,
        strategy: Strategy,
        events: list[FaultEvent],
        messages: int,
        window: int,
        rate: int,
        on_tick: Callable[[dict[str, Any]], None],
        restart: Callable[[], None] | None = None,
    ) -> None:
        if restart is None and any(event.rule is None for event in events):
            raise ValueError("the plan restarts the broker, so it needs a function that does")
        self.broker = broker
        self.strategy = strategy
        self.events = events
        self.rate = rate
        self.publisher = Publisher(strategy, messages, window, PATIENCE_MS)
        self.started: list[StartedEvent] = []
        self.connects = 0
        # The confirms of each BUCKET_MS since the start.
        self.pulse: list[int] = []
        self.queue = f"demo.{strategy.name}"
        # A restart keeps the address.
        self._url = broker.url
        self._on_tick = on_tick
        self._kill_and_start = restart
        self._connection: pika.SelectConnection | None = None
        self._channel: Any = None
        self._is_ready = self._is_pumping = self._is_pump_due = False
        self._restarts = ThreadPoolExecutor(1, "restart")
        self._restart: Future[None] | None = None
        self._began_ms = self._ended_ms = 0.0
        # The number of publishes that the broker is known to have read.
        self._heard = 0
        self._is_asking = False
        # The time of `stop`; 0.0 before.
        self._stopped_ms = 0.0

    def stop(self) -> None:
        """Let `run` raise Stopped soon. It may be called in any thread."""
        self._stopped_ms = self._stopped_ms or now_ms()

    def run(self) -> Proof:
        """Publish all messages while the faults occur, and compare the ledger with the queue. Raise Stopped."""
        self._loop = IOLoop()
        self._began_ms = now_ms()
        try:
            self._connect()
            self._tick()
            self._loop.start()
            # Not after an interruption: pika does not close a loop that a signal has interrupted while it started.
            self._loop.close()
        finally:
            self._restarts.shutdown()
            if self.broker.is_running:
                self.broker.faults.clear()
        self._ended_ms = now_ms()
        if self._stopped_ms:
            raise Stopped
        return prove(self.strategy, self.publisher.messages, self.publisher.ledger, self._queued())

    @property
    def elapsed_ms(self) -> float:
        return (self._ended_ms or now_ms()) - self._began_ms

    @property
    def state(self) -> str:
        """The state of the connection: "connecting", "open", "blocked" or "closed"."""
        if self._ended_ms:
            return "closed"
        if not self._is_ready:
            return "connecting"
        return "blocked" if self.publisher.is_blocked else "open"

    def figures(self) -> dict[str, Any]:
        """Return the current figures."""
        return figures(
            self.publisher,
            [Begun(one.event, one.at, one.hits, one.began_ms) for one in self.started],
            self.events[len(self.started) :],
            self.state,
            self.connects,
            self.elapsed_ms,
            self.pulse,
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
        # pika closes the channels of a lost connection first.
        is_open = self._connection is not None and self._connection.is_open
        self._lose_channel(CHANNEL_CLOSED if is_open else CONNECTION_LOST)
        if is_open:
            self._open_channel()

    def _on_closed(self, connection: pika.SelectConnection, reason: Exception) -> None:
        if connection is not self._connection:
            return
        self._lose_channel(CONNECTION_LOST)
        self._connection = None
        if self._is_over():
            self._loop.stop()
        else:
            self._loop.call_later(RECONNECT_S, self._connect)

    def _lose_channel(self, reason: str) -> None:
        self._channel, self._is_ready, self._is_asking = None, False, False
        self.publisher.disconnected(now_ms(), reason)

    # Answers of the broker

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
        """Publish the messages that are due, in bursts, so that the socket is read in between."""
        if self._is_pumping:
            return
        # pika reports a connection that is lost while publishing by a callback or by an exception.
        self._is_pumping = True
        try:
            for _ in range(BURST_MAX):
                if not self._is_ready or not self._is_in_time() or not self._begin_event():
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
        """Return True if the rate allows another publish; otherwise the next tick tries again."""
        return not self.rate or self.publisher.ledger.sent_count < self.elapsed_ms * self.rate / 1000 + 1

    def _publish(self, number: int, attempt: int) -> None:
        properties = pika.BasicProperties(message_id=str(number), headers={ATTEMPT: attempt}, delivery_mode=2)
        self._channel.basic_publish("", self.queue, b"message %d" % number, properties, mandatory=True)

    # Faults

    def _begin_event(self) -> bool:
        """Begin the event of the next message, once the event before it is over. Return False if publishing must wait.

        Publishing stops at an event while the broker restarts, the connection is blocked, or the previous event is not
        over: a strategy that ignores answers would otherwise finish before the last faults.
        """
        if len(self.started) == len(self.events):
            return True
        event = self.events[len(self.started)]
        if self.publisher.started_count + 1 < event.at:
            return True
        if self.publisher.is_blocked or self._is_restarting():
            return False
        if not all(one.is_over for one in self.started[-1:]):
            # If the broker has the last messages, the fault needs more of them.
            return self._is_heard()
        if event.rule is not None:
            if not self._is_heard():
                # The fault would hit messages before its own.
                return False
            rule = self.broker.faults.add(**event.rule)
            self.started.append(StartedEvent(event, rule, self.publisher.started_count + 1, self.elapsed_ms))
        elif self._kill_and_start is not None:
            self._restart = self._restarts.submit(self._kill_and_start)
            self.started.append(StartedEvent(event, self._restart, self.publisher.started_count + 1, self.elapsed_ms))
        self._on_tick(self.figures())
        return True

    def _is_heard(self) -> bool:
        """Return True if the broker has read all that was published; else ask it, and go on when it answers."""
        sent = self.publisher.ledger.sent_count
        if self._heard == sent:
            return True
        if not self._is_asking:
            self._is_asking = True
            self._channel.queue_declare(self.queue, passive=True, callback=lambda _: self._on_heard(sent))
        return False

    def _on_heard(self, sent: int) -> None:
        self._heard, self._is_asking = sent, False
        self._pump()

    def _is_restarting(self) -> bool:
        return self._restart is not None and not self._restart.done()

    # Time

    def _tick(self) -> None:
        if self._restart is not None and self._restart.done():
            self._restart.result()  # raises what went wrong
        self.publisher.give_up_late(now_ms())
        self._count_pulse()
        self._on_tick(self.figures())
        if self._stopped_ms and now_ms() - self._stopped_ms > STOP_MS:
            self._loop.stop()
            return
        if self._is_over() and self._is_ready:
            self._is_ready = False
            assert self._connection is not None
            self._connection.close()
        else:
            self._pump()
        self._loop.call_later(TICK_S, self._tick)

    def _count_pulse(self) -> None:
        buckets = int(self.elapsed_ms // BUCKET_MS) + 1
        self.pulse.extend([0] * (buckets - len(self.pulse)))
        self.pulse[-1] += len(self.publisher.ledger.confirmed) - sum(self.pulse)

    def _is_over(self) -> bool:
        if self._stopped_ms:
            return True
        if not self.publisher.is_done or self._is_restarting():
            return False
        # Late answers to messages that were published again, and all answers to a strategy that ignores them.
        latest = max((flight.sent_ms for flight in self.publisher.in_flight.values()), default=0.0)
        return not self.publisher.in_flight or now_ms() - latest > SETTLE_MS

    # The proof

    def _queued(self) -> Counter[tuple[int, int]]:
        """Consume the queue; return the number of copies of each (message number, attempt)."""
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
