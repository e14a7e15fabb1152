"""A slice selects events by time and vhost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from amqp_broker.pipeline.lake import Lake
from amqp_broker.pipeline.lake_slice import EVERYTHING, Slice
from tests.pipeline.generated import START_US, Event


def test_a_slice_has_the_events_of_some_minutes_of_one_vhost(lake: Lake, events: list[Event]) -> None:
    since = datetime.fromtimestamp(START_US / 1e6, UTC) + timedelta(minutes=2)
    part = Slice(since, since + timedelta(minutes=1), "plain")
    borders = [int(time.timestamp() * 1_000_000) for time in (since, since + timedelta(minutes=1))]
    wanted = [event for event in events if event["vhost"] == "plain" and borders[0] <= event["time_us"] < borders[1]]
    assert lake.dataset("events", part).count_rows(filter=part.filter) == len(wanted) > 0


def test_everything_has_no_condition() -> None:
    assert EVERYTHING.filter is None
