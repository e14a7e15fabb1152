"""The duel finds bugs: `found.json` has a program for each, which a broker with the bug answers differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.duel.finding import PROGRAMS_MAX, finds, load_found, sought

FOUND = load_found()
RARE = f"none of {PROGRAMS_MAX} random programs has shown it"
ONCE_A_MINUTE = "timeouts of classic queues are looked at once a minute"
# Those that no program finds, and why.
UNFOUND = {
    "nobody_times_out": ONCE_A_MINUTE,
    "everybody_times_out_after_the_shortest_time": ONCE_A_MINUTE,
    "a_paused_client_is_delivered_to": "no program pauses a client",
    "a_client_that_resumes_stays_out": "no program pauses a client",
    "bindings_that_are_about_to_be_removed_count": "the broker is at rest after each step",
    "confirms_are_always_for_one": "RabbitMQ may group confirms in any way",
    "the_journal_is_not_told_what_a_queue_gives_up": "no program restarts the broker",
    "the_timer_is_set_once_only": "a program has shown it, but does not show it each time",
    "timers_outlive_their_queue": "they find nothing to do in a deleted queue",
    **dict.fromkeys(
        (
            "a_cleared_policy_leaves_its_time_to_live",
            "a_deleted_queue_stays_bound",
            "a_limit_by_policy_does_not_look_at_the_new_head",
            "a_message_does_not_expire_behind_a_higher_priority",
            "a_passive_declare_asks_for_the_permission_to_read",
            "a_portion_is_the_last_one",
            "a_purge_leaves_the_counts_of_what_came_back",
            "a_purge_takes_what_is_unacked_too",
            "a_settled_message_leaves_its_deadline",
            "a_transaction_fails_at_a_full_quorum_queue",
            "alternates_by_policy_are_not_followed",
            "an_exchange_remembers_keys_that_nobody_is_bound_with",
            "deaths_are_not_counted",
            "declaring_renews_the_lease_of_a_quorum_queue",
            "deliveries_come_back_in_the_order_of_their_tags",
            "nobody_looks_behind_the_last_that_is_delivered",
            "octets_that_come_back_are_not_counted",
            "operators_have_no_say_in_overflow",
            "settling_does_not_count_in_the_queue",
            "the_first_death_is_told_anew_each_time",
            "the_lowest_policy_applies",
            "the_oldest_death_is_told_first",
            "what_a_lost_channel_held_goes_to_the_tail",
            "what_is_dropped_at_once_dies_in_order",
            "what_is_due_behind_the_head_expires",
            "what_is_refused_is_never_dead_lettered",
        ),
        RARE,
    ),
}


@pytest.mark.verify
@pytest.mark.parametrize("name", sorted(FOUND.keys() - UNFOUND.keys()))
def test_a_planted_bug_is_found(tmp_path: Path, name: str) -> None:
    found = FOUND[name]
    assert found is not None
    assert finds(found, name, tmp_path)


def test_each_bug_is_found_or_a_reason_is_given() -> None:
    assert FOUND.keys() == set(sought())
    assert {name for name, found in FOUND.items() if found is None} == UNFOUND.keys()
