"""Timers against a sorted list."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from amqp_broker.broker.scheduling.timers import Timer, Timers
from tests.properties.generators import examples


@settings(max_examples=examples(3))
@given(st.data())
def test_timers_run_as_a_sorted_list_would(data: st.DataObject) -> None:
    timers, now = Timers(), 0
    waiting: dict[int, int] = {}  # number to deadline
    handles: dict[int, Timer] = {}
    ran: list[int] = []

    def callback_of(number: int) -> Callable[[int], None]:
        def callback(at: int) -> None:
            assert at == now
            ran.append(number)

        return callback

    for number in range(data.draw(st.integers(1, 25))):
        action = data.draw(st.sampled_from(["at", "at", "cancel", "run"]))
        if action == "at":
            waiting[number] = now + data.draw(st.integers(-5, 20))
            handles[number] = timers.at(waiting[number], callback_of(number))
        elif action == "cancel" and handles:
            chosen = data.draw(st.sampled_from(sorted(handles)))
            handles[chosen].cancel()
            waiting.pop(chosen, None)
        elif action == "run":
            now += data.draw(st.integers(0, 15))
            due = sorted((deadline, number) for number, deadline in waiting.items() if deadline <= now)
            timers.run_due(now)
            assert ran == [number for _, number in due]
            for _, done in due:
                del waiting[done]
            ran.clear()
        earliest = min(waiting.values(), default=None)
        assert earliest is None or (timers.earliest_ms is not None and timers.earliest_ms <= earliest)
        assert timers.next_deadline() == earliest
