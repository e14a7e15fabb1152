"""Queues over HTTP: declarations, deletions, and requests that are refused."""

from __future__ import annotations

from urllib.parse import quote

from amqp_broker.conformance.lab import Lab, http_scenario

SHOWN = "disable_stats=true&columns=name,vhost,type,durable,auto_delete,exclusive,arguments"
DURABLE = {"durable": True}


def _path(queue: str) -> str:
    return f"queues/{{vhost}}/{quote(queue, safe='')}"


@http_scenario
def a_queue_is_declared_once(lab: Lab) -> None:
    q = _path(lab.name("q"))
    lab.http("PUT", q, DURABLE)
    lab.http("PUT", q, DURABLE)
    lab.http("GET", f"{q}?{SHOWN}")


@http_scenario
def a_declaration_that_differs_is_refused(lab: Lab) -> None:
    q = _path(lab.name("q"))
    lab.http("PUT", q, DURABLE)
    lab.http("PUT", q, {"durable": True, "auto_delete": True})
    lab.http("PUT", q, {"durable": True, "arguments": {"x-max-length": 3}})
    lab.http("PUT", q, {"durable": True, "arguments": {"x-queue-type": "quorum"}})


@http_scenario
def an_invalid_argument_is_refused(lab: Lab) -> None:
    q = _path(lab.name("q"))
    for arguments in (
        {"x-max-length": "a"},
        {"x-max-length": -1},
        {"x-message-ttl": "1"},
        {"x-expires": 0},
        {"x-overflow": "none"},
        {"x-queue-type": "none"},
        {"x-dead-letter-exchange": 5},
        {"x-dead-letter-routing-key": "k"},
    ):
        lab.http("PUT", q, {"durable": True, "arguments": arguments})


@http_scenario
def values_of_arguments_keep_their_types(lab: Lab) -> None:
    q = _path(lab.name("q"))
    arguments = {"f": 1.5, "l": [1, "a"], "t": {"a": 1}, "b": True, "g": 2**40}
    lab.http("PUT", q, {"durable": True, "arguments": arguments})
    lab.http("GET", f"{q}?disable_stats=true&columns=arguments")


@http_scenario
def a_flag_may_be_a_word(lab: Lab) -> None:
    q = _path(lab.name("q"))
    lab.http("PUT", q, {"durable": "maybe"})
    lab.http("PUT", q, {"durable": "true", "auto_delete": "false"})
    lab.http("GET", f"{q}?{SHOWN}")


@http_scenario
def a_body_that_is_no_object_is_refused(lab: Lab) -> None:
    q = _path(lab.name("q"))
    for body in (b"{", b"[]", b'"x"'):
        lab.http("PUT", q, body)


@http_scenario
def a_name_may_have_any_characters(lab: Lab) -> None:
    for name in ("a/b", "a b", "a%2Fb", "é", "~"):
        q = _path(lab.name(name))
        lab.http("PUT", q, DURABLE)
        lab.http("GET", f"{q}?disable_stats=true&columns=name")


@http_scenario
def a_reserved_name_is_refused(lab: Lab) -> None:
    lab.http("PUT", _path("amq.conformance"), DURABLE)


@http_scenario
def a_name_that_is_too_long_is_refused(lab: Lab) -> None:
    lab.http("PUT", _path("x" * 256), DURABLE)


@http_scenario
def a_missing_queue_is_not_found(lab: Lab) -> None:
    q = _path(lab.name("q"))
    lab.http("GET", q)
    lab.http("DELETE", q)
    lab.http("DELETE", f"{q}/contents")


@http_scenario
def a_queue_of_a_missing_vhost_is_not_found(lab: Lab) -> None:
    vhost = lab.name("vhost")
    lab.http("GET", f"queues/{vhost}")
    lab.http("GET", f"queues/{vhost}/q")
    lab.http("PUT", f"queues/{vhost}/q", DURABLE)


@http_scenario
def a_queue_with_messages_is_not_deleted_if_it_has_to_be_empty(lab: Lab) -> None:
    name = lab.queue(durable=True)
    lab.put(name, b"1")
    lab.http("DELETE", f"{_path(name)}?if-empty=true")
    lab.http("DELETE", f"{_path(name)}/contents")
    lab.http("DELETE", f"{_path(name)}?if-empty=true")
    lab.http("DELETE", _path(name))


@http_scenario
def a_queue_with_consumers_is_not_deleted_if_it_has_to_be_unused(lab: Lab) -> None:
    name = lab.queue(durable=True)
    channel = lab.channel()
    channel.consume(name)
    lab.http("DELETE", f"{_path(name)}?if-unused=true")
    channel.connection.close()
    lab.rest(name)
    lab.http("DELETE", f"{_path(name)}?if-unused=true")


@http_scenario
def an_exclusive_queue_is_shown_and_cannot_be_changed(lab: Lab) -> None:
    name = lab.name("q")
    lab.channel().declare(name, exclusive=True)
    lab.http("PUT", _path(name), {"durable": False})
    lab.http("GET", f"{_path(name)}?disable_stats=true&columns=name,durable,exclusive,auto_delete")
    lab.http("DELETE", f"{_path(name)}/contents")


@http_scenario
def consumers_learn_that_their_queue_was_deleted(lab: Lab) -> None:
    name = lab.queue(durable=True)
    channel = lab.channel()
    channel.consume(name)
    lab.http("DELETE", _path(name))
    channel.expect()
