"""Login, vhost and features of a run."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Exchange, Queue

from amqp_broker.conformance.lab import Lab, Scenario, play
from amqp_broker.conformance.terms import Skipped, Terms
from tests.conformance.broker_under_test import BrokerUnderTest


def test_user_and_vhost_are_shown_as_those_of_the_records() -> None:
    terms = Terms(user="alice", vhost="team")
    assert terms.mask("authenticated user was 'alice'") == "authenticated user was 'guest'"
    assert terms.mask("no queue 'alice' in vhost 'team'") == "no queue 'alice' in vhost '/'"
    assert terms.mask("connection.open virtual_host='team'") == "connection.open virtual_host='/'"
    assert terms.mask("body=b'team'") == "body=b'team'"
    assert terms.mask('{resource,<<"team">>,queue') == '{resource,<<"/">>,queue'


def test_a_response_of_guest_is_one_of_the_user() -> None:
    assert Terms(user="alice").own("\0guest\0wrong") == "\0alice\0wrong"


def test_a_method_of_a_missing_feature_skips_the_scenario() -> None:
    terms = Terms(lacks={"queues of type quorum": "it has none", "bindings between exchanges": "it binds none"})
    terms.check(Queue.Declare, {"arguments": {"x-queue-type": "classic"}})
    terms.check(Basic.Nack, {})
    with pytest.raises(Skipped, match="it has none"):
        terms.check(Queue.Declare, {"arguments": [("x-queue-type", "quorum")]})
    with pytest.raises(Skipped, match="it binds none"):
        terms.check(Exchange.Bind, {})


def test_a_scenario_is_skipped_even_where_it_declares_unrecorded(broker: BrokerUnderTest) -> None:
    def needs_a_stream(lab: Lab) -> None:
        lab.queue("s", arguments={"x-queue-type": "stream"})

    terms = Terms(lacks={"queues of type stream": "it has none"})
    with pytest.raises(Skipped, match="it has none"):
        play(Scenario("x", "area", needs_a_stream), Lab(broker, terms))
