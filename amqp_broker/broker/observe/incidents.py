"""The watch for incidents: dead letters, unroutable messages, and clients with errors.

No work is done per message. Queues and exchanges are looked at each second, a portion at a time, and all of them before
incidents are shown. Each queue and exchange owns its incidents, so nothing remains of a deleted one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from amqp_broker.amqp.errors import NotFound
from amqp_broker.broker.counting.incident import Incident
from amqp_broker.broker.queues.leaving_reasons import PURGED

if TYPE_CHECKING:
    from amqp_broker.amqp.errors import ChannelError
    from amqp_broker.broker.broker import Broker
    from amqp_broker.broker.clients.client_connection import Connection
    from amqp_broker.broker.exchanges.exchange import Exchange
    from amqp_broker.broker.queues.queue import Queue
    from amqp_broker.broker.scheduling.portions import Steps

# Queues and exchanges that are looked at each second.
BATCH: Final = 500
# Losses of a client's connections, or refusals, that are an incident if they come within a period (ms of real time).
LOSSES_MIN: Final = 3
LOSSES_MS: Final = 60_000
# Clients that are remembered; the one that came first is forgotten first.
CLIENTS_MAX: Final = 500
# queue.declare and exchange.declare by class and method: 404 answers only passive ones, which ask for an object.
DECLARING: Final = frozenset({50 << 16 | 10, 40 << 16 | 10})


class Client(NamedTuple):
    """A client, by what stays the same when it connects again. `name` is what it gives as the name of connections."""

    vhost: str
    user: str
    name: str
    host: str


class Losses:
    """Losses or refusals of a client, and the reason of the last; `least` in a minute are an incident."""

    __slots__ = ("_least", "_times", "incident", "reason")

    def __init__(self, least: int) -> None:
        self._least = least
        self._times: deque[int] = deque(maxlen=least)
        self.incident = Incident()
        self.reason = ""

    def add(self, reason: str, now: int) -> None:
        times, incident = self._times, self.incident
        times.append(now)
        self.reason = reason
        if incident.is_recent(now):
            incident.notice(incident.total + 1, now)
        elif len(times) == self._least and now - times[0] <= LOSSES_MS:
            incident.notice(incident.total + self._least, now)
            incident.first_ms = times[0]


class Incidents:
    """All incidents of a broker that belong to no queue or exchange, and the watch for the others."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.lost: dict[Client, Losses] = {}
        self.refused: dict[Client, Losses] = {}
        self.closed_channels: dict[Client, Losses] = {}
        self._current_look = self.look()

    def on_connection_closed(self, connection: Connection) -> None:
        """Note the end of a connection, unless the client has closed it in order."""
        reason = connection.cause or connection.error
        if reason and connection.vhost is not None:
            self._note(self.lost, client_of(connection, connection.vhost.name), reason)

    def on_refused(self, connection: Connection, user: str, reason: str) -> None:
        """Note that a client was not let in, with RabbitMQ's text."""
        self._note(self.refused, client_of(connection, "")._replace(user=user), reason)

    def on_channel_failed(self, connection: Connection, error: ChannelError, method_id: int) -> None:
        """Note that an error has closed a channel, unless the client has asked whether an object exists."""
        is_question = isinstance(error, NotFound) and method_id in DECLARING
        if connection.vhost is not None and not is_question:
            client = client_of(connection, connection.vhost.name)
            self._note(self.closed_channels, client, error.reply_text, least=1)

    def on_first_binding(self, exchange: Exchange) -> None:
        """Excuse the messages that were dropped before an exchange had subscribers; counts are collected."""
        if not exchange.is_watched:
            exchange.unroutable = Incident()
            exchange.unroutable.total = exchange.publishes.drop_unroutable

    def _note(self, kept: dict[Client, Losses], client: Client, reason: str, least: int = LOSSES_MIN) -> None:
        losses = kept.get(client)
        if losses is None:
            if len(kept) >= CLIENTS_MAX:
                del kept[next(iter(kept))]
            losses = kept[client] = Losses(least)
        losses.add(reason, self._broker.real_now())

    def scan(self) -> None:
        """Look at the next portion of queues and exchanges."""
        if sum(1 for _ in islice(self._current_look, BATCH)) < BATCH:
            self._current_look = self.look()

    def look(self) -> Steps[None]:
        """Look at all queues and exchanges, in steps. Counts of channels must have been collected."""
        for vhost in list(self._broker.vhosts.values()):
            for queue in list(vhost.queues.values()):
                if queue.statistics.given_up and not queue.is_deleted:
                    _notice_deaths(queue, self._broker.real_now())
                yield
            for exchange in list(vhost.exchanges.values()):
                dropped = exchange.publishes.drop_unroutable
                if dropped and exchange.is_watched:
                    if exchange.unroutable is None:
                        exchange.unroutable = Incident()
                    exchange.unroutable.notice(dropped, self._broker.real_now())
                yield

    def clients(self) -> Iterator[tuple[str, Client, Losses]]:
        """Yield "lost", "refused" or "closed", the client, and what it has met, of recent incidents."""
        now = self._broker.real_now()
        for word, kept in (("lost", self.lost), ("refused", self.refused), ("closed", self.closed_channels)):
            for client, losses in list(kept.items()):
                if losses.incident.is_recent(now):
                    yield word, client, losses


def _notice_deaths(queue: Queue, now: int) -> None:
    for reason, total in queue.statistics.given_up.items():
        if reason != PURGED:
            queue.statistics.noted_incidents().notice_deaths(reason, total, now)


def client_of(connection: Connection, vhost: str) -> Client:
    """Return the client of a connection."""
    user = "" if connection.user is None else connection.user.name
    return Client(vhost, user, connection.given_name, connection.peer_host)
