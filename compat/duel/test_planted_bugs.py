"""The duel finds bugs: `found.json` has a program for each, which a broker with the bug answers differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.duel.finding import UNSEEN, finds, load_found, sought
from compat.duel.planted import bugs

FOUND = load_found()
# Bugs that none of the random programs has shown.
RARE: set[str] = {
    "a_cleared_policy_leaves_its_time_to_live",
    "a_deleted_queue_stays_bound",
    "a_limit_by_policy_does_not_look_at_the_new_head",
    "a_message_does_not_expire_behind_a_higher_priority",
    "a_passive_declare_asks_for_the_permission_to_read",
    "a_purge_takes_what_is_unacked_too",
    "a_transaction_fails_at_a_full_quorum_queue",
    "alternates_by_policy_are_not_followed",
    "deaths_are_not_counted",
    "deliveries_come_back_in_the_order_of_their_tags",
    "nobody_looks_behind_the_last_that_is_delivered",
    "operators_have_no_say_in_overflow",
    "settling_does_not_count_in_the_queue",
    "the_first_death_is_told_anew_each_time",
    "the_oldest_death_is_told_first",
    "what_is_dropped_at_once_dies_in_order",
    "what_is_due_behind_the_head_expires",
    "what_is_refused_is_never_dead_lettered",
}


@pytest.mark.verify
@pytest.mark.parametrize("name", sorted(FOUND.keys() - RARE))
def test_a_planted_bug_is_found(tmp_path: Path, name: str) -> None:
    found = FOUND[name]
    assert found is not None
    assert finds(found, name, tmp_path)


def test_each_bug_is_found_or_a_reason_is_given() -> None:
    assert FOUND.keys() == set(sought())
    assert {name for name, found in FOUND.items() if found is None} == RARE
    assert UNSEEN.keys() <= bugs().keys()
