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
    "operators_have_no_say_in_overflow": 5,
    "what_is_refused_is_never_dead_lettered": 102,
    "a_dead_letter_tells_how_often_it_was_delivered": 81,
    "transient_messages_that_were_paged_out_come_back": 217,
    "what_is_late_keeps_its_place_when_it_is_not_to_come": 25,
    "what_was_late_and_came_back_is_late_again": 286,
    "what_is_late_is_hit_by_no_other_rule": 49,
    "heartbeats_stay_away_when_their_rule_is_gone": 8,
    "acks_after_a_cancel_are_not_counted": 26,
    "what_is_due_is_delivered": 7,
    "nobody_looks_behind_the_last_that_is_delivered": 20,
    "deaths_are_not_counted": 43,
    "one_more_than_the_limit_is_kept": 6,
    "what_is_refused_is_kept_all_the_same": 6,
    "a_cleared_policy_leaves_its_time_to_live": 5,
    "a_limit_by_policy_counts_for_new_messages_only": 4,
    "acks_of_duplicates_are_counted": 8,
    "who_is_cancelled_by_a_delivery_gives_back_what_he_has": 6,
    "a_block_that_has_ended_ends_the_next": 9,
    "priorities_above_the_highest_do_not_count": 8,
    "the_count_of_deliveries_is_not_told": 10,
    "the_head_goes_back_with_what_comes_back": 7,
    "a_buffer_is_read_on_only_when_somebody_takes": 151,
    "a_rollback_brings_tags_back_in_any_order": 14,
    "a_full_channel_takes_more": 4,
    "settling_does_not_count_in_the_queue": 7,
    "a_client_that_resumes_stays_out": 8,
    "nacks_count_as_confirms": 6,
    "the_expiration_of_a_message_overrides_its_queues": 4,
    "a_requeue_forgets_the_deadline": 4,
    "a_limit_by_policy_does_not_look_at_the_new_head": 14,
    "nobody_times_out": 66,
    "the_first_death_is_told_anew_each_time": 21,
    "a_refused_publish_is_acked": 6,
    "a_lost_ack_is_heard": 18,
    "a_late_confirm_forgets_that_a_queue_refused": 10,
    "a_consumer_is_told_that_it_is_cancelled_and_stays": 7,
    "who_does_not_know_of_cancels_is_told_all_the_same": 8,
    "unblocking_lifts_no_more_than_one_block": 68,
    "low_priorities_come_first": 4,
    "low_priorities_starve": 17,
    "a_message_may_come_back_once_too_often": 21,
    "originals_are_kept_for_ever": 16,
    "a_purge_forgets_what_is_paged_out": 93,
    "confirms_of_what_is_refused_after_a_wait_are_acks": 41,
    "how_often_it_came_back_is_not_written": 9,
    "new_messages_overtake_those_that_came_back": 36,
    "a_closed_channel_forgets_what_it_has_not_committed": 14,
    "an_ack_frees_nobody": 6,
    "consumers_of_a_deleted_queue_are_not_told": 10,
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
