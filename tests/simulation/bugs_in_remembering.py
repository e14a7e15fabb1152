"""Bugs to plant into durability: buffers, batches, confirms, and recovery after a restart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from amqp_broker.amqp.message import Message
from amqp_broker.broker import vhost_policies
from amqp_broker.broker.durability.journal import Journal, Stored
from amqp_broker.broker.durability.paged_buffer import PagedBuffer
from amqp_broker.broker.queues.arrival_backlog import ArrivalBacklog
from amqp_broker.broker.queues.backlog_queue import BacklogQueue
from amqp_broker.broker.queues.priority_backlog import PriorityBacklog
from amqp_broker.broker.queues.queue import Queue
from amqp_broker.broker.queues.return_counts import ReturnCounts
from amqp_broker.broker.vhost import VHost
from amqp_broker.session.channel.confirms import Confirms
from amqp_broker.session.connection.commit_gate import CommitGate
from tests.simulation.planting import plant, replace

# Buffers


@plant
def what_is_handed_on_is_not_written(patch: pytest.MonkeyPatch) -> None:
    def make(deliver_through: Callable[..., None]) -> Any:
        def wrong(self: PagedBuffer, position: int, message: Message, deadline_ms: int | None) -> None:
            deliver_through(self, position, message, deadline_ms)
            self.puts.pop(position, None)

        return wrong

    replace(patch, PagedBuffer, "deliver_through", make)


@plant
def a_settled_message_stays_written(patch: pytest.MonkeyPatch) -> None:
    def make(erase: Callable[[PagedBuffer, int], None]) -> Any:
        def wrong(self: PagedBuffer, position: int) -> None:
            if position in self.puts:
                erase(self, position)

        return wrong

    replace(patch, PagedBuffer, "_erase", make)


@plant
def what_is_being_written_when_it_is_settled_stays(patch: pytest.MonkeyPatch) -> None:
    def make(erase: Callable[[PagedBuffer, int], None]) -> Any:
        def wrong(self: PagedBuffer, position: int) -> None:
            if position not in self.writing:
                erase(self, position)

        return wrong

    replace(patch, PagedBuffer, "_erase", make)


@plant
def a_delivery_is_not_noted(patch: pytest.MonkeyPatch) -> None:
    def make(pop_head: Callable[[PagedBuffer], tuple[int, Message]]) -> Any:
        def wrong(self: PagedBuffer) -> tuple[int, Message]:
            was_dirty, self.is_dirty = self.is_dirty, True
            taken = pop_head(self)
            self.is_dirty = was_dirty
            return taken

        return wrong

    replace(patch, PagedBuffer, "pop_head", make)


@plant
def the_head_goes_back_with_what_comes_back(patch: pytest.MonkeyPatch) -> None:
    def make(put_back_all: Callable[[ArrivalBacklog, Sequence[tuple[int, Message]]], None]) -> Any:
        def wrong(self: ArrivalBacklog, delivered: Sequence[tuple[int, Message]]) -> None:
            if self.paged is not None:
                self.paged.head = min(self.paged.head, *(position for position, _ in delivered))
            put_back_all(self, delivered)

        return wrong

    replace(patch, ArrivalBacklog, "put_back_all", make)


@plant
def a_purge_forgets_what_is_paged_out(patch: pytest.MonkeyPatch) -> None:
    def make(clear: Callable[[PagedBuffer], None]) -> Any:
        def wrong(self: PagedBuffer) -> None:
            self.paged_count = 0
            clear(self)

        return wrong

    replace(patch, PagedBuffer, "clear", make)


@plant
def a_purge_forgets_what_is_unacked_too(patch: pytest.MonkeyPatch) -> None:
    def make(discard: Callable[..., None]) -> Any:
        return lambda self, range_id, start, end: discard(self, range_id, 0, end)

    replace(patch, Journal, "discard", make)


@plant
def what_is_read_has_no_deadline(patch: pytest.MonkeyPatch) -> None:
    def make(read: Callable[..., list[tuple[int, Stored]]]) -> Any:
        def wrong(self: PagedBuffer, start: int, bytes_max: int) -> list[tuple[int, Stored]]:
            found = read(self, start, bytes_max)
            for _, stored in found:
                stored.deadline_ms = None
            return found

        return wrong

    replace(patch, PagedBuffer, "_read", make)


@plant
def a_buffer_is_read_on_only_when_somebody_takes(patch: pytest.MonkeyPatch) -> None:
    def make(pop_head: Callable[[PagedBuffer], tuple[int, Message]]) -> Any:
        def wrong(self: PagedBuffer) -> tuple[int, Message]:
            if not self.memory:
                self.fill()
            paged_count, self.paged_count = self.paged_count, 0
            taken = pop_head(self)
            self.paged_count = paged_count
            return taken

        return wrong

    replace(patch, PagedBuffer, "pop_head", make)


# Batches


@plant
def removes_of_a_failed_batch_are_lost(patch: pytest.MonkeyPatch) -> None:
    replace(patch, PagedBuffer, "take_back", lambda take_back: lambda self, removes: take_back(self, []))


@plant
def puts_of_a_failed_batch_are_lost(patch: pytest.MonkeyPatch) -> None:
    def make(take_back: Callable[[PagedBuffer, list[int]], None]) -> Any:
        def wrong(self: PagedBuffer, removes: list[int]) -> None:
            self.writing = {}
            take_back(self, removes)

        return wrong

    replace(patch, PagedBuffer, "take_back", make)


@plant
def what_was_settled_since_a_batch_failed_is_written(patch: pytest.MonkeyPatch) -> None:
    def take_back(self: PagedBuffer, removes: list[int]) -> None:
        self.puts, self.writing = {**self.writing, **self.puts}, {}
        self.removes = removes
        self.mark()

    patch.setattr(PagedBuffer, "take_back", take_back)


@plant
def definitions_of_a_failed_batch_are_lost(patch: pytest.MonkeyPatch) -> None:
    def make(take_back: Callable[[Journal], None]) -> Any:
        def wrong(self: Journal) -> None:
            if self._writing is not None:
                self._writing.definitions.clear()
            take_back(self)

        return wrong

    replace(patch, Journal, "take_back", make)


@plant
def a_batch_ends_amid_a_read(patch: pytest.MonkeyPatch) -> None:
    def make(append: Callable[..., None]) -> Any:
        def wrong(self: PagedBuffer, position: int, message: Message, deadline_ms: int | None) -> None:
            append(self, position, message, deadline_ms)
            if position % 5 == 3 and self.journal._writing is None:
                self.journal.take_batch()
                self.journal.on_committed()

        return wrong

    replace(patch, PagedBuffer, "append", make)


# Promises


@plant
def confirms_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    replace(patch, Confirms, "confirm", lambda note: lambda self, is_told: note(self, False))


@plant
def confirms_leave_one_batch_too_early(patch: pytest.MonkeyPatch) -> None:
    def make(confirm: Callable[[Confirms, int], None]) -> Any:
        return lambda self, committed: confirm(self, committed + 1)

    replace(patch, Confirms, "on_committed", make)


@plant
def confirms_wait_for_a_batch_with_nothing_in_it(patch: pytest.MonkeyPatch) -> None:
    def make(note: Callable[[Confirms, bool], None]) -> Any:
        return lambda self, is_told: note(self, is_told or bool(self.uncommitted))

    replace(patch, Confirms, "confirm", make)


@plant
def confirms_of_what_is_refused_after_a_wait_are_acks(patch: pytest.MonkeyPatch) -> None:
    def make(confirm: Callable[[Confirms, int], None]) -> Any:
        def wrong(self: Confirms, committed: int) -> None:
            for _, _, rejected in self.uncommitted:
                rejected.clear()
            confirm(self, committed)

        return wrong

    replace(patch, Confirms, "on_committed", make)


@plant
def replies_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CommitGate, "hold", lambda self, batch: None)


@plant
def who_waits_is_not_told_of_a_second_commit(patch: pytest.MonkeyPatch) -> None:
    def make(on_committed: Callable[[CommitGate, int], bool]) -> Any:
        def wrong(self: CommitGate, committed: int) -> bool:
            on_committed(self, committed)
            return False

        return wrong

    replace(patch, CommitGate, "on_committed", make)


@plant
def a_batch_is_passed_over_that_has_messages(patch: pytest.MonkeyPatch) -> None:
    def make(is_void: property) -> Any:
        return property(lambda self: not self._needs_commit)

    replace(patch, Journal, "is_void", make)


# Restarts


@plant
def what_was_delivered_before_is_not_marked(patch: pytest.MonkeyPatch) -> None:
    def make(init: Callable[..., None]) -> Any:
        def wrong(self: PagedBuffer, *arguments: Any, **options: Any) -> None:
            init(self, *arguments, **options)
            self.redelivered_before = 0

        return wrong

    replace(patch, PagedBuffer, "__init__", make)


@plant
def positions_begin_anew(patch: pytest.MonkeyPatch) -> None:
    def make(keep: Callable[[PriorityBacklog, Journal, int], None]) -> Any:
        def wrong(self: PriorityBacklog, journal: Journal, range_id: int) -> None:
            keep(self, journal, range_id)
            self._next = 0

        return wrong

    replace(patch, PriorityBacklog, "keep", make)


@plant
def transient_messages_that_were_paged_out_come_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PagedBuffer, "_is_leftover", lambda self, position, message: False)


@plant
def how_often_it_came_back_is_not_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PagedBuffer, "rewrite", lambda self, position, stored: None)


@plant
def a_restart_does_not_count_as_a_return(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReturnCounts, "on_recovered", lambda self, position, returns, failures=None: None)


@plant
def a_deleted_queue_is_remembered(patch: pytest.MonkeyPatch) -> None:
    not_undefined(patch, "queue")


@plant
def a_removed_binding_is_remembered(patch: pytest.MonkeyPatch) -> None:
    not_undefined(patch, "binding")


@plant
def a_cleared_policy_is_remembered(patch: pytest.MonkeyPatch) -> None:
    not_undefined(patch, "policy")


def not_undefined(patch: pytest.MonkeyPatch, kind: str) -> None:
    def make(undefine: Callable[[Journal, tuple[str, ...]], None]) -> Any:
        return lambda self, key: None if key[0] == kind else undefine(self, key)

    replace(patch, Journal, "undefine", make)


@plant
def a_deleted_queue_leaves_its_messages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PagedBuffer, "drop", lambda self: None)


@plant
def a_restored_queue_does_not_look_at_its_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BacklogQueue, "catch_up", lambda self: self.expire())


@plant
def queues_give_up_what_they_must_amid_a_restart(patch: pytest.MonkeyPatch) -> None:
    def make(apply_to_queue: Callable[[VHost, Queue], bool]) -> Any:
        def wrong(vhost: VHost, queue: Queue) -> bool:
            journal = vhost.broker.journal
            was_restoring, journal.is_restoring = journal.is_restoring, False
            has_changed = apply_to_queue(vhost, queue)
            journal.is_restoring = was_restoring
            return has_changed

        return wrong

    replace(patch, vhost_policies, "apply_to_queue", make)


@plant
def policies_of_restored_exchanges_do_not_apply(patch: pytest.MonkeyPatch) -> None:
    def on_restored(self: VHost) -> None:
        for queue in list(self.queues.values()):
            queue.on_restored()
        for queue in list(self.queues.values()):
            queue.catch_up()

    patch.setattr(VHost, "on_restored", on_restored)
