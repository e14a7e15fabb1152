"""The source of a scenario, as it is printed for a difference."""

from __future__ import annotations

from pamqp.commands import Queue

from amqp_broker.conformance.duel.scenario_source import Source
from amqp_broker.conformance.duel.steps import At, Call, Http, Name, Publish, Settle

Q = Name("q0")
SOURCE = """\
@scenario
def name(lab: Lab) -> None:
    q0 = lab.name("q0")
    a = lab.connect()
    a1 = a.channel(1)
    a1.call(Queue.Declare, queue=q0)
    lab.rest(q0)
    a1.publish(b'1', routing_key=q0)
    a1.publish(b"2...".ljust(4000, b"."), routing_key=q0)
    a1.ack(7, multiple=True)
    lab.http('DELETE', 'policies/{vhost}/p')
    a.abort()
"""


def test_steps_are_lines_of_a_function_that_python_reads() -> None:
    source = Source()
    source.name([Q])
    source.connect(0)
    source.channel(At())
    source.call(Call(At(), Queue.Declare, {"queue": Q}), "call")
    source.rest(["q0", "unknown"])
    source.publish(Publish(At(), {"routing_key": Q}), b"1")
    source.publish(Publish(At(), {"routing_key": Q}), b"2".ljust(4000, b"."))
    source.settle(Settle(At(), "ack", 0, {"multiple": True}), 7)
    source.http(Http("DELETE", "policies/{vhost}/p"), None)
    source.end(0, is_reset=True)
    text = source.text("name")
    assert text == SOURCE
    compile(text, "scenario", "exec")
