"""Results with each verdict, and with characters that documents must escape."""

from __future__ import annotations

from amqp_broker.conformance.judging import Judged, Verdict
from amqp_broker.conformance.lab import Scenario
from amqp_broker.conformance.results import Results


def sample_results() -> Results:
    def scenario(name: str) -> Scenario:
        return Scenario(name, "ttl", print)

    expected = ("a1> basic.get queue='<q>'", "a1< basic.get-ok redelivered=false", "a1<     body=b'&'")
    seen = ("a1> basic.get queue='<q>'", "a1< basic.get-ok redelivered=true\x01", "a1<     body=b'&'", "a1< more")
    places = ("basic.get-ok redelivered", "more: not expected")
    return Results(
        "Some<Broker> 1.0 at amqp://localhost/",
        "RabbitMQ 4.3.6 (--as 4.3)",
        2.5,
        [
            Judged(scenario("a_message_agrees"), Verdict.AGREES),
            Judged(scenario("a_message_differs"), Verdict.DIFFERS, "", places, "4.3", expected, seen),
            Judged(scenario("a_stream_is_skipped"), Verdict.SKIPPED, "the broker has no <streams>"),
        ],
    )
