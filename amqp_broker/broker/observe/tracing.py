"""Switches the trace of a vhost on and off: the firehose `amq.rabbitmq.trace`, the recorder, and the observers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqp_broker.broker.observe.message_trace import MessageTrace
from amqp_broker.broker.observe.recorder import Recorder
from amqp_broker.broker.observe.selection import Selection
from amqp_broker.broker.observe.trace import Observer, Trace, Unacked

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.vhost import VHost


class Tracing:
    """The tracing of a vhost: `vhost.trace` is set while messages are copied, recorded or observed.

    `is_on` says that the firehose copies messages to `amq.rabbitmq.trace`. `recorder` writes all events to a stream,
    and `observers` hear of them.
    """

    def __init__(self, vhost: VHost) -> None:
        self._vhost = vhost
        self.observers: tuple[Observer, ...] = ()
        self._unacked: Unacked = {}
        self.is_on = False
        self.recorder: Recorder | None = None

    def start(self) -> None:
        """Copy published and delivered messages to `amq.rabbitmq.trace`."""
        self.is_on = True
        self._apply()

    def stop(self) -> None:
        """Stop copying messages; the recorder and the observers stay."""
        self.is_on = False
        self._apply()

    def record(self, queue: Queue, selection: Selection) -> None:
        """Write all events of the selected messages to a stream queue, instead of a former one."""
        self.stop_recording()
        self.recorder = Recorder(self._vhost, queue, selection, self.stop_recording)
        self._apply()

    def stop_recording(self) -> None:
        """Write the last events, and stop recording."""
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            recorder.close()
            self._apply()

    def observe(self, observer: Observer) -> None:
        """Report everything that happens to messages to `observer`."""
        self.observers = (*self.observers, observer)
        self._apply()

    def stop_observing(self, observer: Observer) -> None:
        """Report nothing to `observer` any more."""
        self.observers = tuple(other for other in self.observers if other != observer)
        self._apply()

    def _apply(self) -> None:
        """Replace the trace. Routes and queues know whether there is one, so that plain ones need not check."""
        vhost, former, trace = self._vhost, self._vhost.trace, self._new_trace()
        vhost.trace = trace
        if former is not trace:
            for queue in vhost.queues.values():
                queue.follow_trace()
        if former is not None or trace is not None:
            vhost.topology_changed()

    def _new_trace(self) -> MessageTrace | None:
        if not self.observers:
            self._unacked.clear()
        if self.is_on or self.observers:
            return Trace(self._vhost, self.observers, self._unacked, is_published=self.is_on, recorder=self.recorder)
        return self.recorder
