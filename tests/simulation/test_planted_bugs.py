"""The simulation finds bugs: each of these is planted into the broker's code, and must be caught."""

from __future__ import annotations

import pytest

from tests.simulation import (
    bugs_in_counting,
    bugs_in_extensions,
    bugs_in_faults,
    bugs_in_kinds_of_queues,
    bugs_in_remembering,
    bugs_in_the_basics,
)
from tests.simulation.planting import PLANTS
from tests.simulation.simulation import Simulation

SEEDS = 150
STEPS = 300
MODULES = (
    bugs_in_the_basics,
    bugs_in_counting,
    bugs_in_extensions,
    bugs_in_faults,
    bugs_in_kinds_of_queues,
    bugs_in_remembering,
)
# Where to begin with those that few seeds find: a hint that saves time, nothing depends on it.
FOUND_BY = {
    "the_oldest_death_is_told_first": 12,
    "acks_of_what_was_got_are_not_counted": 16,
    "the_lowest_policy_applies": 31,
    "confirms_leave_one_batch_too_early": 13,
    "a_purge_forgets_what_is_unacked_too": 163,
    "a_deleted_exchange_is_still_named_as_a_source": 85,
    "a_purge_leaves_the_counts_of_what_came_back": 45,
    "a_delivery_is_not_noted": 47,
    "queues_give_up_what_they_must_amid_a_restart": 191,
    "what_came_back_goes_before_higher_priorities": 111,
    "operators_have_no_say_in_overflow": 101,
    "what_is_refused_is_never_dead_lettered": 102,
    "a_dead_letter_tells_how_often_it_was_delivered": 81,
    "transient_messages_that_were_paged_out_come_back": 79,
    "what_is_late_keeps_its_place_when_it_is_not_to_come": 87,
    "what_was_late_and_came_back_is_late_again": 42,
    "what_is_late_is_hit_by_no_other_rule": 22,
    "heartbeats_stay_away_when_their_rule_is_gone": 110,
}


def simulate(name: str) -> None:
    # Every other seed has a journal.
    remembers = PLANTS[name].__module__ == bugs_in_remembering.__name__
    seeds = range(1, 2 * SEEDS, 2) if remembers else range(SEEDS)
    for seed in (FOUND_BY.get(name, 1), *seeds):
        Simulation(seed, has_faults=PLANTS[name].__module__ == bugs_in_faults.__name__).run(STEPS)


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_caught(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    PLANTS[name](monkeypatch)
    with pytest.raises(AssertionError):
        simulate(name)
