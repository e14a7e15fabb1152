"""Themes of random programs. Each makes some steps frequent, and gives queues and messages certain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from amqp_broker.conformance.duel.steps import At, Name, Step
from compat.duel import choices, makers
from compat.duel.makers import Draw, Make

# Steps of a list, some of which are none; an average list has 40.
LIST_MIN, LIST_MAX = 20, 60
# Fewer steps where time passes, so that it passes in waits most of all.
TIMED_MAX = 35

_HTTP = (
    makers.policy,
    makers.http_publish,
    makers.http_get,
    makers.http_counts,
    makers.permissions,
    makers.topic_permissions,
    makers.limit,
)


@dataclass(frozen=True)
class Theme:
    """A subject of programs: some steps are frequent. The first queues and the messages have certain values."""

    # The factors of the makers' weights.
    more: Mapping[Make, int] = field(default_factory=dict)
    # Makers in the place of others.
    instead: Mapping[Make, Make] = field(default_factory=dict)
    # The channels of steps, and those that consume at the beginning.
    ats: st.SearchStrategy[At] = choices.ATS
    consumers: st.SearchStrategy[tuple[At, ...]] = choices.CONSUMERS
    # The queues at the beginning.
    queues: st.SearchStrategy[tuple[Name, ...]] = choices.QUEUE_COUNTS
    kind: str = ""
    flags: st.SearchStrategy[dict[str, bool]] = choices.QUEUE_FLAGS
    arguments: st.SearchStrategy[dict[str, Any]] = choices.NOTHING
    arguments_of_q1: st.SearchStrategy[dict[str, Any]] = choices.NOTHING
    properties: st.SearchStrategy[dict[str, Any]] = choices.PROPERTIES
    # Few publishes go to queues directly.
    is_routing: bool = False
    # The program begins with exchanges, to which the first queues are bound.
    is_bound: bool = False
    needs_http: bool = False
    steps_max: int = LIST_MAX

    def arguments_of(self, queue: str) -> st.SearchStrategy[dict[str, Any]]:
        """Return the arguments of a queue at the beginning."""
        if queue == choices.Q1:
            return self.arguments_of_q1
        return self.arguments if queue == choices.Q0 else choices.NOTHING

    @cached_property
    def steps(self) -> st.SearchStrategy[list[Step | None]]:
        return self._steps_of(makers.MAKERS)

    @cached_property
    def steps_without_http(self) -> st.SearchStrategy[list[Step | None]]:
        return self._steps_of([(make, weight) for make, weight in makers.MAKERS if make not in _HTTP])

    def _steps_of(self, weights: list[tuple[Make | None, int]]) -> st.SearchStrategy[list[Step | None]]:
        publish = makers.publishing(self.properties, choices.OFTEN if self.is_routing else choices.SELDOM)
        instead: Mapping[Make, Make] = {makers.publish: publish, **self.instead}
        chosen = [
            (instead.get(make, make) if make else None, weight * (self.more.get(make, 1) if make else 1))
            for make, weight in weights
        ]
        return st.lists(_steps(choices.weighted(*chosen), self.ats), min_size=LIST_MIN, max_size=self.steps_max)


@st.composite
def _steps(draw: Draw, maker: st.SearchStrategy[Make | None], ats: st.SearchStrategy[At]) -> Step | None:
    """Draw a step; hypothesis replaces a needless one by None."""
    make = draw(maker)
    return None if make is None else make(draw, draw(ats))


_ROUTING = {
    makers.bind: 3,
    makers.unbind: 6,
    makers.declare_exchange: 3,
    makers.bind_exchange: 5,
    makers.unbind_exchange: 4,
    makers.delete_queue: 4,
}
_DELETING = {
    makers.delete_queue: 8,
    makers.declare_queue: 5,
    makers.bind: 3,
    makers.unbind: 2,
    makers.delete_exchange: 3,
}
# Steps with exchanges, of which many close their channel.
_PLAIN = dict.fromkeys(
    (
        makers.bind,
        makers.unbind,
        makers.declare_exchange,
        makers.bind_exchange,
        makers.unbind_exchange,
        makers.delete_exchange,
    ),
    0,
)
_COUNTING = {
    **_PLAIN,
    makers.http_counts: 60,
    makers.get: 3,
    makers.settle: 3,
    makers.tx_select: 10,
    makers.tx_commit: 25,
    makers.recover: 0,
    makers.end: 0,
}
_TRANSACTIONS = {**_PLAIN, makers.tx_select: 12, makers.tx_commit: 10, makers.publish: 5}
_PERMISSIONS = {
    makers.permissions: 10,
    makers.topic_permissions: 20,
    makers.limit: 6,
    makers.declare_exchange: 2,
    makers.declare_passively: 15,
}
_LENGTHS = makers.policies(choices.LENGTH_DEFINITIONS, choices.LENGTH_DEFINITIONS, is_operators=choices.HALF)
_CLEARED = makers.policies(choices.EXPIRING_DEFINITIONS, choices.EXPIRING_DEFINITIONS, is_cleared=choices.HALF)
_ALTERNATES = makers.policies(choices.ALTERNATES)
THEMES = choices.weighted(
    (Theme(), 10),
    # Messages that expire: with their queue, behind others, and behind others of higher priority.
    (Theme({makers.wait: 25}, arguments=choices.EXPIRING, properties=choices.EXPIRATIONS, steps_max=TIMED_MAX), 2),
    (
        Theme(
            {**_PLAIN, makers.wait: 25, makers.publish: 2, makers.get: 2},
            properties=choices.SOME_EXPIRE,
            steps_max=TIMED_MAX,
        ),
        2,
    ),
    (
        Theme(
            {**_PLAIN, makers.wait: 40, makers.publish: 3, makers.get: 5},
            ats=choices.FEW_ATS,
            consumers=st.just(()),
            kind="classic",
            flags=choices.TRANSIENT,
            properties=choices.SOME_EXPIRE,
            steps_max=TIMED_MAX,
        ),
        2,
    ),
    # A full consumer in front of messages that expire.
    (
        Theme(
            {**_PLAIN, makers.wait: 25, makers.publish: 2, makers.qos: 0, makers.consume: 0},
            ats=choices.FEW_ATS,
            consumers=st.just((At(),)),
            kind="classic",
            properties=choices.SOME_EXPIRE,
            steps_max=TIMED_MAX,
        ),
        2,
    ),
    (
        Theme(
            {**_PLAIN, makers.wait: 30, makers.policy: 12},
            instead={makers.policy: _LENGTHS},
            consumers=st.just(()),
            properties=choices.SOME_EXPIRE,
            needs_http=True,
            steps_max=TIMED_MAX,
        ),
        2,
    ),
    (Theme({makers.wait: 15}, properties=choices.EXPIRING_PRIORITIES, steps_max=TIMED_MAX), 1),
    (Theme({makers.wait: 30}, kind="quorum", properties=choices.EXPIRING_PRIORITIES, steps_max=TIMED_MAX), 2),
    # Limits, and queues that refuse.
    (Theme({makers.policy: 3, makers.settle: 2}, arguments=choices.SHORT_LIMITS), 3),
    (Theme(_TRANSACTIONS, ats=choices.FEW_ATS, consumers=st.just(()), kind="quorum", arguments=choices.FULL_SOON), 3),
    (Theme({makers.publish: 2, makers.settle: 2}, kind="classic", arguments=choices.REFUSING), 2),
    # The order of messages, and what comes back to a queue.
    (Theme({makers.recover: 2}, arguments=choices.PRIORITIZING, properties=choices.PRIORITIES), 2),
    (
        Theme(
            {**_PLAIN, makers.get: 4, makers.recover: 4, makers.publish: 3},
            ats=choices.FEW_ATS,
            consumers=choices.CONSUMERS_OF_A_CHANNEL,
            kind="quorum",
        ),
        2,
    ),
    (Theme({makers.tx_select: 5, makers.tx_commit: 5, makers.tx_rollback: 5, makers.recover: 2}), 1),
    # Dead letters of one hop and of several.
    (Theme({makers.settle: 3, makers.get: 2}, arguments=choices.DYING, properties=choices.COPIES), 5),
    (
        Theme(
            {makers.settle: 3, makers.get: 3, makers.publish: 2},
            queues=choices.THREE_QUEUES,
            arguments=choices.DYING_AT_ONCE,
            arguments_of_q1=choices.DYING_AGAIN,
        ),
        3,
    ),
    # Consumers, streams and counts.
    (Theme({makers.consume: 2, makers.cancel: 3, makers.end: 2, makers.close_channel: 2}, arguments=choices.SINGLE), 1),
    (Theme({makers.consume: 2, makers.cancel: 2}, kind="stream"), 1),
    (
        Theme(
            {makers.http_counts: 25, makers.purge: 10, makers.settle: 2},
            ats=choices.FEW_ATS,
            needs_http=True,
            steps_max=TIMED_MAX,
        ),
        2,
    ),
    (Theme(_COUNTING, ats=choices.FEW_ATS, kind="classic", needs_http=True, steps_max=TIMED_MAX), 2),
    # Exchanges and bindings.
    (Theme({**_ROUTING, makers.delete_exchange: 3}, is_routing=True), 2),
    (Theme(_DELETING, is_routing=True, is_bound=True), 2),
    # Policies and permissions.
    (Theme({makers.policy: 10, makers.wait: 4}, needs_http=True, steps_max=TIMED_MAX), 1),
    (Theme({makers.policy: 15}, instead={makers.policy: _CLEARED}, needs_http=True), 2),
    (
        Theme(
            {makers.policy: 10, makers.publish: 4},
            instead={makers.policy: _LENGTHS},
            consumers=st.just(()),
            kind="quorum",
            arguments=choices.SOME_DEAD_LETTERS,
            needs_http=True,
        ),
        3,
    ),
    (
        Theme(
            {makers.policy: 8}, instead={makers.policy: _ALTERNATES}, is_routing=True, is_bound=True, needs_http=True
        ),
        1,
    ),
    (Theme(_PERMISSIONS, ats=choices.ATS_OF_USER, is_routing=True, needs_http=True), 3),
)
