from __future__ import annotations

from amqp_broker.broker.counting.history import BASIC, GLOBAL, THINNED_AFTER, History

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
START = 1_700_000_000_000 - 1_700_000_000_000 % (24 * HOUR_MS)


def history_of(*samples: tuple[int, int]) -> History:
    """A history of samples of `publish`, five seconds apart if not more."""
    history = History()
    for at_ms, publish in samples:
        history.keep({"publish": publish}, at_ms, at_ms - 5000)
    return history


def publish_at(history: History, time_ms: int, publish: int = 0, now: int = 0, unchanged_until_ms: int = 0) -> float:
    return history.at(time_ms, {"publish": publish}, now, unchanged_until_ms)["publish"]


def test_counts_that_were_always_0_take_no_samples() -> None:
    history = history_of((START, 0), (START + 5000, 0))
    assert len(history) == 0
    assert publish_at(history, START, now=START + 5000) == 0


def test_the_first_change_comes_after_zeros() -> None:
    history = history_of((START, 10))
    assert history.times == [START - 5000, START]
    assert [publish_at(history, START + ms) for ms in (-9000, -5000, -2500, 0)] == [0, 0, 5, 10]


def test_counts_that_were_found_at_the_start_have_no_past() -> None:
    history = History()
    history.keep({"messages": 10}, START, START)
    assert history.times == [START]
    assert history.at(START - 1, {"messages": 10}, START, START) == {"messages": 0}
    assert history.at(START, {"messages": 10}, START, START) == {"messages": 10}


def test_unchanged_counts_take_no_samples() -> None:
    history = history_of((START, 10), (START + 5000, 10), (START + 10_000, 10))
    assert len(history) == 2


def test_a_change_after_a_pause_is_not_spread_over_the_pause() -> None:
    history = history_of((START, 10), (START + HOUR_MS, 20))
    assert publish_at(history, START + HOUR_MS - 5000) == 10
    assert publish_at(history, START + HOUR_MS - 2500) == 15


def test_changes_after_the_last_sample_came_after_the_last_look() -> None:
    history = history_of((START, 10))
    now, looked_ms = START + HOUR_MS, START + HOUR_MS - 4000
    past = [publish_at(history, now - ms, 50, now, looked_ms) for ms in (HOUR_MS, 5000, 4000, 2000, 0)]
    assert past == [10, 10, 10, 30, 50]


def test_a_count_that_comes_up_later_was_0_before() -> None:
    history = history_of((START, 10))
    history.keep({"publish": 10, "ack": 4}, START + 5000, START)
    assert history.at(START, {"publish": 10, "ack": 4, "get": 1}, START + 5000, START + 5000) == {
        "publish": 10,
        "ack": 0,
        "get": 0,
    }
    assert history.at(START + 2500, {"ack": 4}, START + 5000, START + 5000) == {"ack": 2}


def busy(history: History, duration_ms: int) -> None:
    """A message in each second, and a sample in every five."""
    for at_ms in range(START, START + duration_ms + 1, 5000):
        history.keep({"publish": (at_ms - START) // 1000}, at_ms, at_ms - 5000)


def test_old_samples_are_thinned_out_and_the_counts_remain() -> None:
    history = History()
    busy(history, 3 * HOUR_MS)
    end = START + 3 * HOUR_MS
    assert len(history) <= 121 + 60 + THINNED_AFTER
    for age_ms in (0, 10_000, 10 * MINUTE_MS, HOUR_MS):
        assert publish_at(history, end - age_ms) == (3 * HOUR_MS - age_ms) / 1000
    history.thin(end)
    assert end - history.times[1] <= BASIC[-1][0] < end - history.times[0]


def test_the_history_of_a_node_covers_a_day() -> None:
    history = History(GLOBAL)
    busy(history, 25 * HOUR_MS)
    end = START + 25 * HOUR_MS
    assert len(history) <= 121 + 60 + 48 + 34 + THINNED_AFTER
    assert publish_at(history, end - 24 * HOUR_MS) == HOUR_MS / 1000


def test_samples_are_read_backwards() -> None:
    history = History()
    assert list(history.backwards("ack")) == []
    for second, acked in enumerate((1, 5, 5, 2)):
        history.keep({"ack": acked, "deliver": 7}, second * 1000, 0)
    assert list(history.backwards("deliver", "get", "ack")) == [(3000, [7, 0, 2]), (1000, [7, 0, 5]), (0, [7, 0, 1])]
