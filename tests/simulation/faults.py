"""Faults: random rules, and the exact effect that each must have had.

The match, `after` and `times` determine the messages that a rule hits. So its counts must equal the broker's after each
step, and a rule for another vhost must never match.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pamqp import frame
from pamqp.commands import Connection

from amqp_broker.amqp.connection_states import ENDED
from amqp_broker.broker.lab.delivery_faults import DelayedDelivery
from amqp_broker.broker.lab.fault_rules import Rule
from tests.simulation.client import CONFIRMING, TRANSACTIONAL, ChannelModel, Client, ConsumerModel, Held, Publish
from tests.simulation.connection_faults import LASTING_ACTIONS, add_lasting, afflict, recover, unblock
from tests.simulation.delivery_faults import DELIVERY_ACTIONS, LateModel, cancel_now, let_go, release
from tests.simulation.ledger import Copy, Message, demand

if TYPE_CHECKING:
    from tests.simulation.queues import QueueModel
    from tests.simulation.simulation import Simulation

ELSEWHERE = "elsewhere"
RULES_MAX = 8
PUBLISH_ACTIONS = ["confirm_nack", "confirm_drop", "confirm_delay", "return"]


@dataclass(eq=False)
class RuleModel:
    rule: Rule
    said: dict[str, Any]
    matched: int = 0
    hits: int = 0
    # Deliveries that it delayed and that were requeued: it does not delay them twice.
    delayed: set[Copy] = field(default_factory=set)
    # Deliveries that it does not hold, because they were released before.
    allowed: int = 0
    # When what it does to a client is over.
    over_ms: dict[Client, int] = field(default_factory=dict)

    @property
    def is_spent(self) -> bool:
        return self.said.get("on") == "now" or self.hits == self.said.get("times")

    def fits(self, message: Message, queue: str | None = None) -> bool:
        said = self.said
        return (
            ELSEWHERE not in said.values()
            and said.get("exchange") in (None, message.exchange)
            and said.get("routing_key") in (None, message.routing_key)
            and said.get("queue") in (None, queue)
        )

    def count_match(self) -> bool:
        if self.is_spent:
            return False
        self.matched += 1
        is_hit: bool = self.matched > self.said.get("after", 0)
        self.hits += is_hit
        return is_hit


@dataclass
class FaultsModel:
    """The rules in force, oldest first."""

    rules: list[RuleModel] = field(default_factory=list)
    # The model of each delayed delivery; None until the model has seen it leave its queue.
    delayed: dict[DelayedDelivery, LateModel | None] = field(default_factory=dict)
    # Consumers that are cancelled when the broker has time to.
    cancels_due: list[ConsumerModel] = field(default_factory=list)
    # Rules that were removed.
    ended: list[RuleModel] = field(default_factory=list)

    def on_publish(self, client: Client, channel: ChannelModel, publish: Publish) -> None:
        """Apply the rules to a publish: set its fate instead of routing."""
        if not client.blocked_by and (block := self.first("block", publish.message)) is not None:
            afflict(client, block)
        if channel.mode == TRANSACTIONAL:
            return
        self.return_mandatory(publish, publish.queues)
        if channel.mode == CONFIRMING:
            publish.is_unconfirmed = self.first("confirm_drop", publish.message) is not None
            if not publish.is_unconfirmed:
                publish.is_nacked = self.first("confirm_nack", publish.message) is not None
                delay = self.first("confirm_delay", publish.message)
                publish.delay_ms = 0 if delay is None else delay.said["delay_ms"]
        publish.is_refused = publish.is_nacked and not publish.is_lost
        if publish.is_nacked or publish.is_lost:
            publish.is_lost, publish.queues = True, []

    def first(self, action: str, message: Message, queue: str | None = None) -> RuleModel | None:
        """Return the rule with this action that hits a message, beside which no other one counts."""
        return next(
            (
                one
                for one in self.rules
                if one.said["action"] == action
                and one.said.get("on") not in ("now", "open")
                and one.fits(message, queue)
                and one.count_match()
            ),
            None,
        )

    def return_mandatory(self, publish: Publish, queues: list[QueueModel]) -> None:
        """Return a mandatory message that would go to some queues, if a rule says so."""
        if publish.mandatory and queues and (one := self.first("return", publish.message)) is not None:
            publish.returns = 1
            publish.is_lost = not one.said.get("is_routed")

    def lost_acks(self, held: dict[int, Held], tags: list[int]) -> set[int]:
        """Which of the acks the broker does not hear."""
        copies = {tag: held[tag].copy for tag in tags}
        return {
            tag
            for tag, copy in copies.items()
            if not copy.queue.is_deleted and self.first("drop_ack", copy.message, copy.queue.name) is not None
        }

    @property
    def loses_acks(self) -> bool:
        return any(one.said["action"] == "drop_ack" for one in self.rules)

    def check(self) -> None:
        for one in self.rules:
            demand(
                (one.rule.matched, one.rule.hits) == (one.matched, one.hits),
                f"{one.said} has matched {one.rule.matched} and hit {one.rule.hits}, not {one.matched} and {one.hits}",
            )


# Actions


def add_fault(sim: Simulation) -> None:
    chance = sim.chance
    if len(sim.faults.rules) == RULES_MAX:
        return
    action = chance.choice([*PUBLISH_ACTIONS, "drop_ack", *DELIVERY_ACTIONS, "delay_delivery", *LASTING_ACTIONS])
    if action in LASTING_ACTIONS:
        add_lasting(sim, partial(add_rule, sim))
        return
    said: dict[str, Any] = {"action": action, "times": chance.choice([1, 1, 3, 10])}
    if chance.random() < 0.4:
        said["after"] = chance.choice([1, 2, 5])
    if action == "cancel_consumer":
        said["on"] = "deliver"
    if action in ("confirm_delay", "delay_delivery"):
        said["delay_ms"] = chance.choice([1, 400, 5000])
    if action == "return" and chance.random() < 0.3:
        said["is_routed"] = True
    where = chance.random()
    if action in DELIVERY_ACTIONS:
        # One queue, for in which order several deliver is the broker's business.
        consumed = [queue.name for queue in sim.topology.queues.values() if queue.consumers]
        also = [one.said["queue"] for one in sim.faults.rules if one.said["action"] in DELIVERY_ACTIONS]
        said["queue"] = chance.choice([*sim.taste.queues, *consumed, *consumed, *also, *also])
        said["times"] = chance.choice([1, 3, 10])
    elif action == "drop_ack" and where < 0.6:
        said["queue"] = chance.choice(sim.taste.queues)
    elif where < 0.3:
        said["routing_key"] = chance.choice(sim.taste.queues)
    elif where < 0.4:
        said["exchange"] = ""
    if ELSEWHERE in sim.lab.broker.vhosts and chance.random() < 0.3:
        said["vhost"] = ELSEWHERE
    elif chance.random() < 0.5:
        said["vhost"] = "/"
    add_rule(sim, Rule(**said), said)


def add_rule(sim: Simulation, rule: Rule, said: dict[str, Any]) -> RuleModel:
    sim.tell(said)
    one = RuleModel(sim.lab.broker.faults.add(rule), said)
    sim.faults.rules.append(one)
    sim.hear()
    return one


def remove_fault(sim: Simulation) -> None:
    """A rule ends; what it has done stays done."""
    if sim.faults.rules:
        one = sim.faults.rules.pop(sim.chance.randrange(len(sim.faults.rules)))
        sim.tell(one.said)
        sim.lab.broker.faults.remove(one.rule.id)
        sim.faults.ended.append(one)
        let_go(sim, one)
        sim.hear()
        for client in sim.clients:
            recover(client, one)


def strike_now(sim: Simulation) -> None:
    """Something happens to one connection, and to no other."""
    if len(sim.clients) < 2:
        return
    client = sim.chance.choice(sim.clients)
    action = sim.chance.choice(["cut", "reset", "close_connection", "close_channel"])
    sim.tell(f"{action} {client}")
    sim.hear()
    channels = list(client.channels.values())
    name = f"regex:^{client.peer.session.name.replace('.', '[.]')}$"
    rule = sim.lab.broker.faults.add(Rule(action, connection=name))
    expected = int(action != "close_channel" or bool(channels))
    demand(rule.hits == expected, f"{action} hits {rule.hits} connections")
    if action == "close_channel":
        sim.hear()
        for channel in channels:
            sim.expect_close(client, channel, 406)
    else:
        lose(sim, client, action)
    sim.lab.broker.faults.remove(rule.id)


def lose(sim: Simulation, client: Client, action: str) -> None:
    session = client.peer.session
    sim.forget(client)
    if action == "close_connection":
        demand(client.answer(0, Connection.Close).reply_code == 320, f"{client} is closed otherwise")
        client.send(frame.marshal(Connection.CloseOk(), 0))
    else:
        demand(
            session.state is ENDED and session.faults.resets_socket is (action == "reset"), f"{client} is not {action}"
        )


def remove_all_faults(sim: Simulation) -> None:
    while sim.faults.rules:
        remove_fault(sim)
    if ELSEWHERE in sim.lab.broker.vhosts:
        sim.lab.broker.delete_vhost(ELSEWHERE)


FAULT_ACTIONS = [add_fault, remove_fault, strike_now, cancel_now, release, unblock]
FAULT_WEIGHTS = [14, 3, 2, 1, 3, 2]
