"""The run of a scenario at a broker."""

from __future__ import annotations

import pytest
from pamqp.commands import Queue

from amqp_broker.conformance.api_client import HttpApi
from amqp_broker.conformance.lab import SCENARIOS, STOPPED, Lab, Scenario, add, run, scenario
from amqp_broker.conformance.received import Stopped
from amqp_broker.conformance.terms import NO_API, Skipped, Terms
from tests.conformance.broker_under_test import BrokerUnderTest, transcript
from tests.running import RunningServer


def test_names_are_those_of_the_run_and_shown_without_its_prefix(broker: BrokerUnderTest) -> None:
    lab = Lab(broker)
    assert lab.name("q") == lab.prefix + "q" != Lab(broker).name("q")
    lab.transcript.record(lab.name("q"))
    assert lab.transcript.lines == ["q"]


def test_objects_are_deleted_even_if_the_scenario_fails(broker: BrokerUnderTest) -> None:
    names: list[str] = []

    def fails(lab: Lab) -> None:
        names.append(lab.queue("q", durable=True))
        names.append(lab.name("x"))
        lab.channel().exchange(names[1])
        raise Stopped("it fails")

    def look(lab: Lab) -> None:
        connection = lab.connect()
        connection.channel().call(Queue.Declare, queue=names[0], passive=True)
        connection.channel().exchange(names[1], passive=True)

    assert transcript(fails, broker)[-1] == f"{STOPPED} it fails"
    assert [line.split(" ")[2] for line in transcript(look, broker) if "close" in line] == ["reply_code=404"] * 2


def test_a_message_is_put_without_showing_its_connection(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        lab.put(lab.queue(), b"1", b"2")

    assert transcript(play, broker) == ["lab> puts b'1', b'2' into q"]


def test_a_queue_that_takes_no_message_stops_the_scenario(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        lab.put(lab.name("none"), b"1")

    assert transcript(play, broker)[-1] == f"{STOPPED} none does not take messages"


def test_remaining_input_is_recorded_at_the_end(broker: BrokerUnderTest) -> None:
    def play(lab: Lab) -> None:
        lab.channel().publish(b"", routing_key=lab.name("none"), mandatory=True)

    assert transcript(play, broker)[-2].startswith("a1< basic.return reply_code=312")


def test_a_scenario_is_registered_under_its_name_and_module() -> None:
    def an_example_of_a_scenario(lab: Lab) -> None:
        """Do nothing."""

    try:
        assert scenario(an_example_of_a_scenario) is an_example_of_a_scenario
        assert SCENARIOS["an_example_of_a_scenario"].question == "test_lab/an_example_of_a_scenario"
    finally:
        del SCENARIOS["an_example_of_a_scenario"]


def test_two_scenarios_of_one_name_are_a_mistake() -> None:
    one = Scenario("x", "area", print)
    registry = {"x": one}
    with pytest.raises(AssertionError, match="two scenarios are called x"):
        add(one, "x", registry)


def test_a_run_returns_lines(broker: BrokerUnderTest) -> None:
    assert run(Scenario("x", "area", lambda lab: lab.transcript.record("line")), broker) == "line\n"


def test_requests_over_http_are_shown_without_the_names_of_the_run() -> None:
    def asks(lab: Lab) -> None:
        queue = lab.name("q")
        lab.http("PUT", f"queues/{{vhost}}/{queue}", {"durable": True})
        lab.http("GET", "queues/{vhost}/{prefix}q?disable_stats=true&columns=name,vhost")

    with RunningServer(management=True, management_port=0, default_vhost="team a") as server:
        api = HttpApi(server.management_url, "guest", "guest")
        lines = run(
            Scenario("x", "area", asks), BrokerUnderTest(server.port), Terms(vhost="team a", api=api)
        ).splitlines()
    assert lines == [
        'lab> PUT queues/{vhost}/q {"durable": true}',
        "lab< 201 null",
        "lab> GET queues/{vhost}/{prefix}q?disable_stats=true&columns=name,vhost",
        'lab< 200 {"name": "q", "vhost": "/"}',
    ]


def test_a_scenario_is_skipped_without_the_http_api(broker: BrokerUnderTest) -> None:
    with pytest.raises(Skipped, match=NO_API):
        Lab(broker).http("GET", "whoami")
