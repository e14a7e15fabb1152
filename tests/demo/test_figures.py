from __future__ import annotations

import json

from amqp_broker.demo.fault_plan import FaultEvent
from amqp_broker.demo.figures import BUCKET_MS, Begun, figures, for_page, result
from amqp_broker.demo.ledger import CONFIRMED, IN_FLIGHT, NOT_SENT
from amqp_broker.demo.proof import prove
from amqp_broker.demo.publisher import Publisher
from amqp_broker.demo.strategies import STRATEGIES

NACKS = FaultEvent(1, "nacks 2 messages", {"action": "confirm_nack", "times": 2})
BLOCKS = FaultEvent(2, "blocks", {"action": "block", "times": 1})
RESTART = FaultEvent(3, "is killed", None)


def a_publisher() -> Publisher:
    publisher = Publisher(STRATEGIES["async"], 5, 2, 500)
    publisher.next(0)
    publisher.next(0)
    publisher.nacked(1, False, 4)
    publisher.acked(2, False, 8)
    publisher.next(9)
    return publisher


def test_figures_are_json() -> None:
    begun = [Begun(NACKS, 12, 2, 3.0), Begun(BLOCKS, 22, 0, 7.0)]
    shown = figures(a_publisher(), begun, [RESTART], "open", 1, 12.0, [0, 1])
    assert json.loads(json.dumps(shown)) == shown
    assert (shown["sent"], shown["confirmed"], shown["in_flight"], shown["window"]) == (3, 1, 1, 2)
    assert (shown["median_ms"], shown["p99_ms"], shown["retries"]) == (8, 8, {"nacked": 1})
    assert [event["state"] for event in shown["plan"]] == ["over", "now", "to come"]
    assert [event["at"] for event in shown["plan"]] == [12, 22, 3]
    assert [event["began_ms"] for event in shown["plan"]] == [3.0, 7.0, None]
    assert (shown["pulse"], shown["grid"]) == ([0, 1], IN_FLIGHT + CONFIRMED + 3 * NOT_SENT)


def test_the_page_gets_a_pulse_that_does_not_grow_with_the_time() -> None:
    shown = figures(a_publisher(), [], [], "open", 1, 0.0, range(1000))
    short, long = for_page({**shown, "pulse": [1, 2]}), for_page(shown)
    assert (short["pulse"], short["bucket_ms"]) == ([1, 2], BUCKET_MS)
    assert (len(long["pulse"]), sum(long["pulse"]), long["bucket_ms"]) == (200, sum(range(1000)), 5 * BUCKET_MS)


def test_a_block_ends_when_the_publisher_is_unblocked() -> None:
    publisher = a_publisher()
    publisher.blocked()
    shown = figures(publisher, [Begun(NACKS, 12, 2, 3.0), Begun(BLOCKS, 22, 1, 7.0)], [], "blocked", 1, 0.0)
    assert [event["state"] for event in shown["plan"]] == ["over", "now"]
    publisher.unblocked(1)
    shown = figures(publisher, [Begun(NACKS, 12, 2, 3.0), Begun(BLOCKS, 22, 1, 7.0)], [], "open", 1, 0.0)
    assert [event["state"] for event in shown["plan"]] == ["over", "over"]


def test_a_publisher_that_does_not_wait_has_no_window() -> None:
    shown = figures(Publisher(STRATEGIES["naive"], 5, 2, 500), [], [], "connecting", 0, 0.0)
    assert shown["window"] is None
    assert shown["median_ms"] is None


def test_a_result_is_the_proof_with_its_timings() -> None:
    publisher = a_publisher()
    shown = figures(publisher, [], [], "closed", 1, 12.0)
    proof = prove(publisher.strategy, 5, publisher.ledger, {(2, 1): 1})
    came = result(shown, proof.as_dict())
    assert (came["strategy"], came["is_held"], came["retries"], came["elapsed_ms"]) == ("async", False, 1, 12.0)
