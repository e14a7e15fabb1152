from __future__ import annotations

import json

from amqp_broker.demo.figures import figures, result
from amqp_broker.demo.proof import prove
from amqp_broker.demo.publisher import Publisher
from amqp_broker.demo.storm import Gust
from amqp_broker.demo.strategies import STRATEGIES

NACKS = Gust(1, "nacks 2 messages", {"action": "confirm_nack", "times": 2})
BLOCKS = Gust(2, "blocks", {"action": "block", "times": 1})
RESTART = Gust(3, "is killed", None)


def a_publisher() -> Publisher:
    publisher = Publisher(STRATEGIES["async"], 5, 2, 500)
    publisher.next(0)
    publisher.next(0)
    publisher.nacked(1, False, 4)
    publisher.acked(2, False, 8)
    publisher.next(9)
    return publisher


def test_they_tell_the_publisher_and_the_storm_as_json_can() -> None:
    told = figures(a_publisher(), [(NACKS, 2), (BLOCKS, 0)], [RESTART], "open", 1, 12.0)
    assert json.loads(json.dumps(told)) == told
    assert (told["sent"], told["confirmed"], told["in_flight"], told["window"]) == (3, 1, 1, 2)
    assert (told["median_ms"], told["p99_ms"], told["retries"]) == (8, 8, {"nacked": 1})
    assert [gust["state"] for gust in told["storm"]] == ["over", "now", "to come"]


def test_a_block_is_over_when_the_publisher_is_told_so() -> None:
    publisher = a_publisher()
    publisher.blocked()
    told = figures(publisher, [(NACKS, 2), (BLOCKS, 1)], [], "blocked", 1, 0.0)
    assert [gust["state"] for gust in told["storm"]] == ["over", "now"]
    publisher.unblocked(1)
    told = figures(publisher, [(NACKS, 2), (BLOCKS, 1)], [], "open", 1, 0.0)
    assert [gust["state"] for gust in told["storm"]] == ["over", "over"]


def test_who_does_not_wait_has_no_window() -> None:
    told = figures(Publisher(STRATEGIES["naive"], 5, 2, 500), [], [], "connecting", 0, 0.0)
    assert told["window"] is None
    assert told["median_ms"] is None


def test_a_result_is_the_proof_with_what_it_took() -> None:
    publisher = a_publisher()
    told = figures(publisher, [], [], "closed", 1, 12.0)
    proof = prove(publisher.strategy, 5, publisher.ledger, {(2, 1): 1})
    came = result(told, proof.as_dict())
    assert (came["strategy"], came["is_held"], came["retries"], came["elapsed_ms"]) == ("async", False, 1, 12.0)
