"""Effects of rules on connections while they last: blocked clients, and clients without heartbeats.

- A blocked client gets connection.blocked once, with the reason, and connection.unblocked once. Meanwhile the broker
  does not read it, so the model sends nothing; the client gets everything else, and no timeout closes it.
- A block ends with its rule, at its time, or when it is lifted, whichever is first.
- A client whose heartbeats are stopped gets none; every other client gets some bytes in each interval.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from amqp_broker.broker.lab import connection_faults
from amqp_broker.broker.lab.fault_rules import Rule
from tests.simulation.client import Client
from tests.simulation.ledger import demand

if TYPE_CHECKING:
    from tests.simulation.faults import RuleModel
    from tests.simulation.simulation import Simulation

LASTING_ACTIONS = ["block", "stop_heartbeats"]


def is_end_of_block(callback: object) -> bool:
    return isinstance(callback, partial) and callback.func is connection_faults.end_fault


def afflict(client: Client, one: RuleModel) -> None:
    """A rule has hit a client, perhaps not for the first time."""
    if one in client.suffers_from:
        return
    client.heard_at = client.lab.now
    if one.said["action"] == "block" and not client.blocked_by:
        client.blocked_at = client.lab.now
        client.expect_notice(one.said.get("text", "low on memory"))
    client.suffers_from.append(one)
    if "duration_ms" in one.said:
        one.over_ms[client] = client.lab.now + one.said["duration_ms"]


def recover(client: Client, one: RuleModel) -> None:
    """End the effect of a rule on a client."""
    if one not in client.suffers_from:
        return
    client.suffers_from.remove(one)
    one.over_ms.pop(client, None)
    client.heard_at = client.lab.now
    if one.said["action"] == "block" and not client.blocked_by:
        if client.lab.now - client.blocked_at >= client.heartbeat_s * 1000:
            client.excused_until = client.lab.now
        client.expect_notice(None)


def end_block(sim: Simulation, callback: partial[None]) -> None:
    """A block has lasted as long as it may."""
    session, rule = callback.args
    client = next((client for client in sim.clients if client.peer.session is session), None)
    if client is not None:
        one = next((one for one in client.blocked_by if one.rule is rule), None)
        demand(one is not None, f"{client}: a block ends that has ended before")
        assert one is not None
        demand(one.over_ms[client] == sim.lab.now, f"{client} is blocked until now, not {one.over_ms[client]}")
        recover(client, one)


def check_notices(client: Client) -> None:
    demand(client.notices == client.notices_due, f"{client} received {client.notices}, not {client.notices_due}")
    client.notices.clear()
    client.notices_due.clear()
    demand(
        client.peer.session.blocking.is_blocked is bool(client.blocked_by),
        f"{client} is blocked by {[one.said for one in client.blocked_by]}, or is it?",
    )
    now = client.lab.now
    late = [one.said for one in client.blocked_by if one.over_ms.get(client, now) < now]
    demand(not late, f"{client} is still blocked by {late}")


def check_heartbeats(client: Client) -> None:
    """Every client that asked for heartbeats gets some bytes in each interval, unless a fault stops them."""
    if client.heartbeat_s and not client.is_paused and not client.is_mute:
        silent_ms = client.lab.now - client.heard_at
        demand(silent_ms <= client.heartbeat_s * 1000, f"{client} has heard nothing for {silent_ms} ms")


# Actions


def add_lasting(sim: Simulation, add: Callable[[Rule, dict[str, Any]], RuleModel]) -> None:
    """Add a rule that blocks clients or stops heartbeats: now, at a publish, or at the login."""
    chance = sim.chance
    old = [one for one in sim.faults.ended if one.said["action"] == "block"]
    if old and chance.random() < 0.5:
        # A rule that was removed may be added again.
        one = chance.choice(old)
        sim.faults.ended.remove(one)
        rule, said = one.rule, one.said
    else:
        action = chance.choice([*LASTING_ACTIONS, "block"])
        said = {"action": action, "on": chance.choice(["now", "publish" if action == "block" else "open"])}
        if action == "block" and chance.random() < 0.5:
            said["duration_ms"] = chance.choice([1, 700, 4000, 20_000])
        if action == "block" and chance.random() < 0.3:
            said["text"] = "low on patience"
        if said["on"] == "now" and chance.random() < 0.7:
            said["connection"] = only(chance.choice(sim.clients))
        elif said["on"] != "now":
            said["times"] = chance.choice([1, 2, 5])
        rule = Rule(**said)
    before = rule.hits
    one = add(rule, said)
    one.matched, one.hits = rule.matched - rule.hits + before, before
    if said["on"] == "now":
        hit(sim, one)


def only(client: Client) -> str:
    """Return a match for the name of this connection alone."""
    return f"regex:^{re.escape(client.peer.session.name)}$"


def hit(sim: Simulation, one: RuleModel) -> list[Client]:
    """Whom a rule on "now" hits."""
    found = [
        client for client in sim.clients if one.said.get("connection") in (None, only(client)) and shows(client, one)
    ]
    one.matched += len(found)
    one.hits += len(found)
    for client in found:
        afflict(client, one)
    return found


def shows(client: Client, one: RuleModel) -> bool:
    """Return whether a rule has an effect on a client: without heartbeats, none can be stopped."""
    return one.said["action"] != "stop_heartbeats" or bool(client.heartbeat_s)


def on_open(sim: Simulation, client: Client) -> None:
    for one in sim.faults.rules:
        if one.said.get("on") == "open" and shows(client, one) and one.count_match():
            afflict(client, one)


def unblock(sim: Simulation) -> None:
    """Lift the blocks of one client or of all; the rules stay, and may block again."""
    client = sim.chance.choice([*sim.clients, None])
    sim.tell(client)
    rule = sim.lab.broker.faults.add(Rule("unblock", connection=None if client is None else only(client)))
    found = [one for one in (sim.clients if client is None else [client]) if one.blocked_by]
    demand(rule.hits == len(found), f"{rule.hits} connections are unblocked, not {len(found)}")
    sim.lab.broker.faults.remove(rule.id)
    sim.hear()
    for client in found:
        for one in client.blocked_by:
            recover(client, one)
