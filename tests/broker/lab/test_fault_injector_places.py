"""The tables "Where rules apply" of docs/faults.md, played cell by cell.

A hit is counted if and only if it has an effect: each scene is played without the rule and with it, and the output to
clients and the contents of queues are compared.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.amqp.errors import AMQPError, Disconnect
from amqp_broker.amqp.message import Address
from amqp_broker.broker.lab.connection_faults import BlackHoled
from amqp_broker.broker.lab.fault_rules import ACTIONS, Rule
from amqp_broker.session.methods.basic_publish import put
from tests.broker_parts import new_message
from tests.management.asking import Desk
from tests.peer import Peer

PAGE: Final = Path(__file__).parents[3] / "docs" / "faults.md"
LONG_MS: Final = 10_000
REPLY_TO: Final = "amq.rabbitmq.reply-to"
QUEUES: Final[dict[str, dict[str, Any]]] = {
    "classic": {},
    "priority": {"x-max-priority": 3},
    "quorum": {"x-queue-type": "quorum"},
    "stream": {"x-queue-type": "stream"},
}


class Scene:
    """A broker, its clients, and the durable queue q of some kind; `shown` collects what clients and queues show."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.desk = Desk()
        self.lab = self.desk.lab
        self.shown: list[object] = []
        self.peers: list[Peer] = []
        self.peer, self.publisher = self.connect(), self.connect()
        self.peer.declare("q", durable=True, arguments=QUEUES[kind])

    def connect(self) -> Peer:
        self.peers.append(self.lab.connect())
        return self.peers[-1]

    def send(self, *methods: Any) -> None:
        """Send methods, unless the connection has ended."""
        if not self.peer.session.state.ignores_input:
            self.peer.send(*methods)

    def look(self) -> None:
        """Note what clients and queues show."""
        for peer in self.peers:
            self.shown.append((b"".join(peer.session.outbox.take()), peer.session.state))
        for queue in self.lab.vhost.queues.values():
            self.shown.append((queue.name, queue.ready_count, queue.unacked_count, len(queue.consumers)))

    def end(self) -> None:
        """Look at once and later, and see who still answers."""
        for duration_ms in (0, LONG_MS):
            self.lab.advance(duration_ms)
            self.lab.drain()
            self.look()
        self.send(commands.Basic.Qos(prefetch_count=1))
        self.look()


# A scene, which yields when the rule is to be added.
Play = Callable[[Scene], Iterator[None]]


def in_confirm_mode(scene: Scene) -> Iterator[None]:
    scene.send(commands.Confirm.Select())
    yield
    scene.peer.publish("q", b"1", mandatory=True)


def without_confirms(scene: Scene) -> Iterator[None]:
    yield
    scene.peer.publish("q", b"1", mandatory=True)


def in_a_transaction(scene: Scene) -> Iterator[None]:
    yield from _transaction(scene, commands.Tx.Commit())


def rolled_back(scene: Scene) -> Iterator[None]:
    yield from _transaction(scene, commands.Tx.Rollback())


def _transaction(scene: Scene, end: Any) -> Iterator[None]:
    scene.send(commands.Tx.Select())
    yield
    scene.peer.publish("q", b"1", mandatory=True)
    scene.look()
    scene.send(end)


def not_mandatory(scene: Scene) -> Iterator[None]:
    scene.send(commands.Confirm.Select())
    yield
    scene.peer.publish("q", b"1")


def without_a_queue(scene: Scene) -> Iterator[None]:
    scene.send(commands.Confirm.Select())
    yield
    scene.peer.publish("nowhere", b"1", mandatory=True)


def to_a_delayed_exchange(scene: Scene) -> Iterator[None]:
    arguments: FieldTable = {"x-delayed-type": "fanout"}
    scene.send(
        commands.Exchange.Declare(exchange="later", exchange_type="x-delayed-message", arguments=arguments),
        commands.Queue.Bind(queue="q", exchange="later"),
        commands.Confirm.Select(),
    )
    yield
    scene.peer.publish("q", b"1", exchange="later", mandatory=True, headers={"x-delay": 100})


def when_due(scene: Scene) -> Iterator[None]:
    for _ in to_a_delayed_exchange(scene):
        pass
    yield


def as_a_dead_letter(scene: Scene) -> Iterator[None]:
    dead_letters: FieldTable = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    scene.send(commands.Queue.Declare(queue="first", arguments=dead_letters))
    scene.publisher.publish("first", b"1", expiration="5")
    yield
    scene.lab.advance(5)


def by_a_shovel(scene: Scene) -> Iterator[None]:
    scene.send(commands.Confirm.Select())
    yield
    session = scene.peer.session
    # As a shovel's link does.
    try:
        put(session.channels[1], Address("", "q"), "q", new_message(b"1").content_for(1, session.frame_max))
    except (AMQPError, Disconnect):
        session.drop()
    except BlackHoled:
        pass


def over_http(scene: Scene) -> Iterator[None]:
    yield
    body = {"properties": {}, "routing_key": "q", "payload": "1", "payload_encoding": "string"}
    scene.shown.append(scene.desk.ask("POST", "/api/exchanges/%2F/amq.default/publish", body))


def to_a_consumer(scene: Scene) -> Iterator[None]:
    yield from _consumer(scene, no_ack=False)
    scene.send(commands.Basic.Ack(1))


def to_a_consumer_without_acks(scene: Scene) -> Iterator[None]:
    yield from _consumer(scene, no_ack=True)


def acked_in_a_transaction(scene: Scene) -> Iterator[None]:
    scene.send(commands.Tx.Select())
    yield from _consumer(scene, no_ack=False)
    scene.send(commands.Basic.Ack(1), commands.Tx.Commit())


def acked_and_rolled_back(scene: Scene) -> Iterator[None]:
    scene.send(commands.Tx.Select())
    yield from _consumer(scene, no_ack=False)
    scene.send(commands.Basic.Ack(1), commands.Tx.Rollback())


def _consumer(scene: Scene, *, no_ack: bool) -> Iterator[None]:
    scene.send(
        commands.Basic.Qos(prefetch_count=10), commands.Basic.Consume(queue="q", consumer_tag="c", no_ack=no_ack)
    )
    yield
    scene.publisher.publish("q", b"1")
    scene.lab.advance(0)
    scene.look()


def of_a_dead_letter(scene: Scene) -> Iterator[None]:
    scene.send(commands.Basic.Consume(queue="q", consumer_tag="c"))
    yield from as_a_dead_letter(scene)
    scene.look()
    scene.send(commands.Basic.Ack(1))


def by_basic_get(scene: Scene) -> Iterator[None]:
    scene.publisher.publish("q", b"1")
    yield
    scene.send(commands.Basic.Get(queue="q"))
    scene.look()
    scene.send(commands.Basic.Ack(1))


def got_over_http(scene: Scene) -> Iterator[None]:
    scene.publisher.publish("q", b"1")
    yield
    body = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    scene.shown.append(scene.desk.ask("POST", "/api/queues/%2F/q/get", body))


def as_a_direct_reply(scene: Scene) -> Iterator[None]:
    scene.send(commands.Basic.Consume(queue=REPLY_TO, consumer_tag="replies", no_ack=True))
    name = scene.peer.session.channels[1].reply_name
    assert name is not None
    yield
    scene.publisher.publish(name, b"1")


# Actions that have a column of their own in a table.
OWN_COLUMNS: Final = ("confirm_*", "return", "*_delivery")
NO_STREAMS: Final = ("classic", "priority", "quorum")
# Rows of the tables: how the message comes, and the kinds of queues.
PUBLISHES: Final[dict[str, tuple[Play, tuple[str, ...]]]] = {
    "in confirm mode": (in_confirm_mode, tuple(QUEUES)),
    "without confirms": (without_confirms, tuple(QUEUES)),
    "in a transaction": (in_a_transaction, tuple(QUEUES)),
    "in a transaction that is rolled back": (rolled_back, tuple(QUEUES)),
    "that is not mandatory": (not_mandatory, tuple(QUEUES)),
    "that no queue gets": (without_a_queue, ("classic",)),
    "to a delayed exchange": (to_a_delayed_exchange, tuple(QUEUES)),
    "of a delayed message when it is due": (when_due, tuple(QUEUES)),
    "of a dead letter": (as_a_dead_letter, tuple(QUEUES)),
    "by a shovel of this broker": (by_a_shovel, tuple(QUEUES)),
    "over HTTP": (over_http, tuple(QUEUES)),
}
DELIVERIES: Final[dict[str, tuple[Play, tuple[str, ...]]]] = {
    "to a consumer": (to_a_consumer, NO_STREAMS),
    "to a consumer with `no_ack`": (to_a_consumer_without_acks, NO_STREAMS),
    "to a consumer in a transaction": (acked_in_a_transaction, NO_STREAMS),
    "to a consumer in a transaction that is rolled back": (acked_and_rolled_back, NO_STREAMS),
    "to a consumer of a stream": (to_a_consumer, ("stream",)),
    "of a dead letter": (of_a_dead_letter, NO_STREAMS),
    "by basic.get": (by_basic_get, NO_STREAMS),
    "over HTTP": (got_over_http, NO_STREAMS),
    "of a direct reply": (as_a_direct_reply, ("classic",)),
}


def rules_of(column: str) -> list[tuple[str, str]]:
    """Return the actions and moments that a column of the tables is about."""
    name = column.split("`")[1]
    if column.startswith("`"):
        return [(action, ACTIONS[action].on[0]) for action in fnmatch.filter(ACTIONS, name)]
    own = {action for pattern in OWN_COLUMNS for action in fnmatch.filter(ACTIONS, pattern)}
    return [(action, name) for action in ACTIONS if name in ACTIONS[action].on and action not in own]


def cells(rows: dict[str, tuple[Play, tuple[str, ...]]], first: str) -> Iterator[Any]:
    """Yield play, kind of queue, action, moment and expectation for each cell of a table of the page."""
    lines = PAGE.read_text("utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} |"))
    columns = [cell.strip() for cell in lines[start].strip("|").split("|")][1:]
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        label, *entries = (cell.strip() for cell in line.strip("|").split("|"))
        found.append(label)
        play, kinds = rows[label]
        for column, entry in zip(columns, entries, strict=True):
            for (action, moment), kind in product(rules_of(column), kinds):
                yield pytest.param(
                    play,
                    kind,
                    action,
                    moment,
                    entry != "no",
                    id=f"{label}-{kind}-{action} on {moment}".replace("`", ""),
                )
    assert found == list(rows)


def played(play: Play, kind: str, *rules: Rule) -> list[object]:
    """Return what a scene shows with some rules."""
    scene = Scene(kind)
    for _ in play(scene):
        for rule in rules:
            scene.lab.broker.faults.add(rule)
    scene.end()
    return scene.shown


@pytest.mark.parametrize(
    ("play", "kind", "action", "moment", "applies"), [*cells(PUBLISHES, "a publish"), *cells(DELIVERIES, "a delivery")]
)
def test_a_hit_is_counted_where_the_page_says_so_and_has_an_effect(
    play: Play, kind: str, action: str, moment: str, applies: bool
) -> None:
    rule = Rule(action, on=moment, delay_ms=1000 if "delay_ms" in ACTIONS[action].needs else 0)
    plain = played(play, kind)
    assert played(play, kind) == plain, "the scene is not repeatable"
    assert (played(play, kind, rule) != plain, rule.hits) == (applies, int(applies))


PUBLISH_ACTIONS: Final = [
    (action, moment) for action in ACTIONS for moment in ("publish", "confirm") if moment in ACTIONS[action].on
]
DELIVER_ACTIONS: Final = [(action, "deliver") for action in ACTIONS if "deliver" in ACTIONS[action].on]


@pytest.mark.parametrize(
    ("play", "first", "second"),
    [
        pytest.param(play, first, second, id=f"{play.__name__}-{' on '.join(first)}-{' on '.join(second)}")
        for play, actions in ((in_confirm_mode, PUBLISH_ACTIONS), (to_a_consumer, DELIVER_ACTIONS))
        for first, second in product(actions, actions)
    ],
)
def test_a_rule_whose_effect_another_one_hides_counts_no_hit(
    play: Play, first: tuple[str, str], second: tuple[str, str]
) -> None:
    def scene(*names: tuple[str, str] | None) -> tuple[list[object], list[int]]:
        rules = [
            Rule(name[0], on=name[1], delay_ms=1000 if "delay_ms" in ACTIONS[name[0]].needs else 0)
            for name in names
            if name is not None
        ]
        shown = played(play, "classic", *rules)
        return shown, [rule.hits for rule in rules]

    both, (first_hits, second_hits) = scene(first, second)
    without_first, [second_alone] = scene(second)
    without_second, [first_alone] = scene(first)
    # A rule that does not hit beside the other may take its place.
    assert not first_hits or both != without_first or second_alone > second_hits
    assert not second_hits or both != without_second or first_alone > first_hits
    assert first_hits + second_hits > 0
