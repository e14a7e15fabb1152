"""Policies, operator policies and definitions over HTTP, and what they do to queues and exchanges."""

from __future__ import annotations

from typing import Any

from pamqp.commands import Basic, Confirm, Queue

from amqp_broker.conformance.lab import Lab, http_scenario


def _policy(lab: Lab, kind: str = "policies") -> str:
    return f"{kind}/{{vhost}}/{lab.name('p')}"


def _body(lab: Lab, definition: object, **more: Any) -> dict[str, Any]:
    return {"pattern": f"^{lab.name('q')}", "definition": definition, "apply-to": "queues", **more}


@http_scenario
def a_policy_is_set_changed_and_removed(lab: Lab) -> None:
    p = _policy(lab)
    lab.http("PUT", p, _body(lab, {"max-length": 1}))
    lab.http("GET", p)
    lab.http("PUT", p, _body(lab, {"max-length": 2}, priority=5))
    lab.http("GET", p)
    lab.http("DELETE", p)
    lab.http("GET", p)
    lab.http("DELETE", p)


@http_scenario
def a_policy_limits_a_queue_at_once(lab: Lab) -> None:
    q = lab.queue(durable=True)
    lab.put(q, b"1", b"2", b"3")
    lab.http("PUT", _policy(lab), _body(lab, {"max-length": 2}))
    lab.rest(q)
    lab.channel().call(Queue.Declare, queue=q, passive=True)
    lab.http("DELETE", _policy(lab))
    lab.rest(q)
    lab.put(q, b"4")
    lab.channel().drain(q)


@http_scenario
def an_operator_policy_limits_what_a_policy_permits(lab: Lab) -> None:
    q = lab.queue(durable=True)
    lab.http("PUT", _policy(lab), _body(lab, {"max-length": 3}))
    lab.http("PUT", _policy(lab, "operator-policies"), _body(lab, {"max-length": 1}))
    lab.rest(q)
    lab.put(q, b"1", b"2")
    lab.channel().drain(q)
    lab.http("DELETE", _policy(lab, "operator-policies"))
    lab.http("DELETE", _policy(lab))


@http_scenario
def an_invalid_policy_is_refused(lab: Lab) -> None:
    p = _policy(lab)
    for body in (
        _body(lab, {"max-length": "a"}),
        _body(lab, {"unknown": 1}),
        _body(lab, {}),
        _body(lab, {"max-length": 1}, priority="x"),
        _body(lab, {"max-length": 1}, **{"apply-to": "none"}),
        {"definition": {"max-length": 1}},
        {"pattern": ""},
    ):
        lab.http("PUT", p, body)
    lab.http("GET", p)


@http_scenario
def a_definition_that_operators_may_not_set_is_refused(lab: Lab) -> None:
    p = _policy(lab, "operator-policies")
    lab.http("PUT", p, _body(lab, {"dead-letter-exchange": "x"}))
    lab.http("GET", p)


@http_scenario
def a_policy_refuses_publishes_of_channels_that_have_published_before(lab: Lab) -> None:
    p, q = _policy(lab), lab.name("q")
    publisher, newcomer, consumer = (lab.connect().channel() for _ in range(3))
    consumer.call(Queue.Declare, queue=q, durable=True, arguments={"x-queue-type": "quorum"})
    for channel in (publisher, newcomer):
        channel.call(Confirm.Select)
    publisher.publish(b"1", routing_key=q)
    publisher.publish(b"2", routing_key=q)
    publisher.confirms(1, 2)
    lab.http("PUT", p, _body(lab, {"max-length": 1, "overflow": "reject-publish"}))
    lab.rest(q)
    consumer.call(Basic.Get, queue=q, no_ack=True)
    publisher.publish(b"refused", routing_key=q)
    publisher.confirms(3, 3)
    newcomer.publish(b"taken", routing_key=q)
    newcomer.confirms(1, 1)
    lab.rest(q)
    consumer.drain(q)


def _overflow(lab: Lab, queue_type: str) -> None:
    """Fill a queue whose argument and policy differ in the overflow, each of both ways."""
    channel = lab.connect().channel()
    channel.call(Confirm.Select)
    pairs = [("reject-publish", "drop-head"), ("drop-head", "reject-publish")]
    for turn, (argument, policy) in enumerate(pairs):
        q = lab.name(f"q{turn}")
        lab.http("PUT", _policy(lab), _body(lab, {"overflow": policy}))
        arguments = {"x-queue-type": queue_type, "x-max-length": 1, "x-overflow": argument}
        channel.call(Queue.Declare, queue=q, durable=True, arguments=arguments)
        for number in range(1, 4):
            channel.publish(b"%d" % number, routing_key=q)
            channel.confirms(3 * turn + number, 3 * turn + number)
            lab.rest(q)
        channel.drain(q)
    lab.http("DELETE", _policy(lab))


@http_scenario
def a_policy_determines_the_overflow_of_a_quorum_queue(lab: Lab) -> None:
    _overflow(lab, "quorum")


@http_scenario
def an_argument_determines_the_overflow_of_a_classic_queue(lab: Lab) -> None:
    _overflow(lab, "classic")


@http_scenario
def a_policy_limits_the_target_before_dead_letters_of_the_source_reach_it(lab: Lab) -> None:
    source, target = lab.name("q.source"), lab.name("q.target")
    channel = lab.connect().channel()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target}
    channel.call(Queue.Declare, queue=source, durable=True, arguments=arguments)
    channel.call(Queue.Declare, queue=target, durable=True)
    lab.put(source, b"1", b"2", b"3")
    lab.http("PUT", _policy(lab), _body(lab, {"max-length": 1, "overflow": "reject-publish"}))
    lab.rest(source, target)
    channel.drain(target)
    channel.drain(source)


@http_scenario
def definitions_of_a_vhost_are_imported(lab: Lab) -> None:
    q, x = lab.name("q"), lab.name("x")
    binding = {"source": x, "destination": q, "destination_type": "queue", "routing_key": "k", "arguments": {}}
    document = {
        "queues": [{"name": q, "durable": True, "auto_delete": False, "arguments": {"x-max-length": 2}}],
        "exchanges": [
            {"name": x, "type": "topic", "durable": True, "auto_delete": False, "internal": False, "arguments": {}}
        ],
        "bindings": [binding],
        "unknown": 1,
    }
    lab.http("POST", "definitions/{vhost}", document)
    lab.http("GET", f"queues/{{vhost}}/{q}?disable_stats=true&columns=name,durable,arguments")
    lab.http("GET", f"exchanges/{{vhost}}/{x}?disable_stats=true&columns=name,type,durable")
    lab.http("GET", f"bindings/{{vhost}}/e/{x}/q/{q}?columns=source,destination,routing_key,properties_key")
    lab.http("POST", "definitions/{vhost}", document)


@http_scenario
def definitions_have_to_be_json(lab: Lab) -> None:
    lab.http("POST", "definitions/{vhost}", b"{")
    lab.http("POST", "definitions/{vhost}", {})
