"""The actions of a simulated world: short functions, chosen by weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.committing import commit_or_fail, crash
from tests.simulation.connections import (
    answer_close,
    close_channel,
    connect,
    do_wrong,
    drain_all,
    drain_on,
    leave_all,
    lose_some,
    open_channel,
    open_channel_of,
    pause_or_resume,
    resume_all,
    send_heartbeats,
    speak_on_closing_channel,
)
from tests.simulation.messages import cancel, commit, consume, get, publish, qos, recover, roll_back, select, settle
from tests.simulation.topology import (
    bind,
    clear_policy,
    declare_exchange,
    declare_queue,
    delete_exchange,
    delete_queue,
    look_at_queue,
    purge,
    remove_all,
    set_policy,
    unbind,
)

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

__all__ = ["ACTIONS", "WEIGHTS", "drain_all", "leave_all", "open_channel_of", "remove_all", "resume_all", "wait_long"]


def pass_time(sim: Simulation) -> None:
    sim.let_pass(sim.chance.choice([1, 1, 100, 500, 500, 3000, 8000]))


def pass_minutes(sim: Simulation) -> None:
    """Longer than most clients are given to settle, or to send a heartbeat."""
    sim.let_pass(sim.chance.choice([61_000, 150_000]))


def wait_long(sim: Simulation) -> None:
    sim.let_pass(86_400_000)


ACTIONS_AND_WEIGHTS: list[tuple[Callable[[Simulation], None], int]] = [
    (publish, 36),
    (settle, 30),
    (consume, 14),
    (get, 5),
    (open_channel, 8),
    (declare_queue, 14),
    (bind, 8),
    (qos, 6),
    (cancel, 2),
    (drain_on, 6),
    (pause_or_resume, 4),
    (send_heartbeats, 4),
    (pass_time, 10),
    (pass_minutes, 1),
    (connect, 2),
    (declare_exchange, 3),
    (select, 3),
    (commit, 6),
    (roll_back, 3),
    (recover, 1),
    (look_at_queue, 4),
    (purge, 3),
    (unbind, 2),
    (set_policy, 6),
    (clear_policy, 2),
    (close_channel, 2),
    (do_wrong, 2),
    (answer_close, 2),
    (speak_on_closing_channel, 1),
    (delete_queue, 1),
    (delete_exchange, 1),
    (lose_some, 1),
    (commit_or_fail, 12),
    (crash, 3),
]
ACTIONS = [action for action, _ in ACTIONS_AND_WEIGHTS]
WEIGHTS = [weight for _, weight in ACTIONS_AND_WEIGHTS]
