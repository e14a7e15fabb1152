"""Parts of all rows: counters with rates, times, and the figures of Erlang's processes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from amqp_broker.management.node.rates import DETAILS, Range
from amqp_broker.management.node.rates import RATE as RATE

if TYPE_CHECKING:
    from amqp_broker.broker.counting.history import Charted
    from amqp_broker.management.http.request import Request

# Prefix of the query parameters for the samples of a group.
GROUPS: Final = {"message_stats": "msg_rates", "lengths": "lengths", "octets": "data_rates", "churn": "msg_rates"}
# Figures of a new process of Erlang's, as RabbitMQ shows them. Typed clients read unsigned numbers.
GARBAGE_COLLECTION: Final = {
    "max_heap_size": 0,
    "min_bin_vheap_size": 46_422,
    "min_heap_size": 233,
    "fullsweep_after": 65_535,
    "minor_gcs": 0,
}
DAY_S: Final = 86_400


def with_details(stats: Mapping[str, int]) -> dict[str, Any]:
    """Return numbers with the `_details` that RabbitMQ adds to each."""
    detailed: dict[str, Any] = {}
    for name, number in stats.items():
        detailed[name] = number
        detailed[DETAILS[name]] = RATE
    return detailed


class Statistics:
    """The counts of objects with their rates and, if the query asks for them, samples: for one answer.

    Raises InvalidParameter for a query with an invalid range of samples.
    """

    def __init__(self, request: Request) -> None:
        self._rates = request.node.rates
        self._spans = {group: Range.of(request.query, asked) for group, asked in GROUPS.items()}

    def has_samples(self, group: str) -> bool:
        """Return whether the query asks for samples of a group."""
        return self._spans[group] is not None

    def of(self, holder: Charted, group: str, counts: dict[str, int]) -> dict[str, Any]:
        """Return current counts of an object with details; `group` is one of `GROUPS`."""
        return self._rates.stats(holder, counts, self._spans[group])


def iso_time(at_ms: int) -> str:
    """Return a time as RabbitMQ writes it: 2026-11-21T09:45:12.165+00:00."""
    seconds, ms = divmod(at_ms, 1000)
    return f"{_whole_second(seconds)}.{ms:03}+00:00"


@lru_cache(maxsize=4096)
def _whole_second(at_s: int) -> str:
    days, seconds = divmod(at_s, DAY_S)
    year, month, day = _date(days)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"


@lru_cache(maxsize=64)
def _date(days: int) -> tuple[int, int, int]:
    """Return the year, month and day of a day since the epoch.

    Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day
