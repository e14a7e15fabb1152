"""Switches the trace of a vhost on and off: the copies to `amq.rabbitmq.trace`, and the observers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from amqp_broker.broker.observe.trace import Observer, Trace, TracedVHost

if TYPE_CHECKING:
    from amqp_broker.broker.queues.queue import Queue


class TracingVHost(TracedVHost, Protocol):
    """The vhost whose messages are traced or not."""

    trace: Trace | None

    @property
    def queues(self) -> Mapping[str, Queue]: ...

    def topology_changed(self) -> None:
        """Discard what publishers know about routes."""
        ...


class Tracing:
    """The tracing of a vhost: `vhost.trace` is set while messages are copied or observed."""

    def __init__(self, vhost: TracingVHost) -> None:
        self._vhost = vhost

    @property
    def is_on(self) -> bool:
        """True while published and delivered messages are copied to `amq.rabbitmq.trace`."""
        trace = self._vhost.trace
        return trace is not None and trace.is_published

    @property
    def is_extended(self) -> bool:
        """True while the extended trace is on."""
        trace = self._vhost.trace
        return trace is not None and trace.is_extended

    def start(self, extended: bool = False) -> None:
        """Copy published and delivered messages to `amq.rabbitmq.trace`; with `extended`, copy all events."""
        self._apply(self._observers, is_published=True, is_extended=extended)

    def stop(self) -> None:
        """Stop copying messages; observers stay."""
        self._apply(self._observers, is_published=False)

    def observe(self, observer: Observer) -> None:
        """Report everything that happens to messages to `observer`."""
        self._apply((*self._observers, observer), is_published=self.is_on, is_extended=self.is_extended)

    def stop_observing(self, observer: Observer) -> None:
        """Report nothing to `observer` any more."""
        observers = tuple(other for other in self._observers if other != observer)
        self._apply(observers, is_published=self.is_on, is_extended=self.is_extended)

    @property
    def _observers(self) -> tuple[Observer, ...]:
        trace = self._vhost.trace
        return trace.observers if trace is not None else ()

    def _apply(self, observers: tuple[Observer, ...], *, is_published: bool, is_extended: bool = False) -> None:
        """Replace the trace. A traced vhost has no plain routes and queues, so that plain ones need not check."""
        vhost, is_traced = self._vhost, is_published or bool(observers)
        was_traced = vhost.trace is not None
        vhost.trace = Trace(vhost, observers, is_published=is_published, is_extended=is_extended) if is_traced else None
        if was_traced is is_traced:
            return
        for queue in vhost.queues.values():
            queue.apply(queue.settings)
        vhost.topology_changed()
