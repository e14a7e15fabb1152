"""Exchanges and bindings over HTTP: declarations, deletions, and requests that are refused."""

from __future__ import annotations

from pamqp.commands import Basic, Exchange, Queue

from amqp_broker.conformance.lab import Lab, http_scenario

SHOWN = "disable_stats=true&columns=name,vhost,type,durable,auto_delete,internal,arguments"
BINDING = "columns=source,destination,destination_type,routing_key,arguments,properties_key"


def _exchange(lab: Lab, name: str = "x", kind: str = "direct") -> str:
    """Declare an exchange and return its path."""
    path = f"exchanges/{{vhost}}/{lab.name(name)}"
    lab.http("PUT", path, {"type": kind, "durable": True})
    return path


def _bindings(lab: Lab) -> str:
    """Declare an exchange and a queue; return the path of their bindings."""
    _exchange(lab, kind="topic")
    return f"bindings/{{vhost}}/e/{lab.name('x')}/q/{lab.queue(durable=True)}"


@http_scenario
def an_exchange_is_declared_once(lab: Lab) -> None:
    x = _exchange(lab)
    lab.http("PUT", x, {"type": "direct", "durable": True})
    lab.http("GET", f"{x}?{SHOWN}")


@http_scenario
def an_exchange_that_is_declared_differently_is_refused(lab: Lab) -> None:
    x = _exchange(lab)
    lab.http("PUT", x, {"type": "fanout", "durable": True})
    lab.http("PUT", x, {"type": "direct", "durable": False})
    lab.http("PUT", x, {"type": "direct", "durable": True, "internal": True})


@http_scenario
def an_exchange_needs_a_type_that_exists(lab: Lab) -> None:
    x = f"exchanges/{{vhost}}/{lab.name('x')}"
    lab.http("PUT", x, {"durable": True})
    lab.http("PUT", x, {"type": "x-zork", "durable": True})


@http_scenario
def an_alternate_exchange_has_to_be_a_name(lab: Lab) -> None:
    x = f"exchanges/{{vhost}}/{lab.name('x')}"
    lab.http("PUT", x, {"type": "direct", "durable": True, "arguments": {"alternate-exchange": 5}})


@http_scenario
def predeclared_exchanges_stay_as_they_are(lab: Lab) -> None:
    lab.http("PUT", "exchanges/{vhost}/amq.direct", {"type": "direct"})
    lab.http("PUT", "exchanges/{vhost}/amq.conformance", {"type": "direct"})
    lab.http("PUT", "exchanges/{vhost}/amq.default", {"type": "direct"})


@http_scenario
def a_missing_exchange_is_not_found(lab: Lab) -> None:
    x = f"exchanges/{{vhost}}/{lab.name('x')}"
    lab.http("GET", x)
    lab.http("DELETE", x)
    lab.http("GET", f"{x}/bindings/source")


@http_scenario
def an_exchange_with_bindings_is_not_deleted_if_it_has_to_be_unused(lab: Lab) -> None:
    bindings = _bindings(lab)
    lab.http("POST", bindings, {"routing_key": "k"})
    lab.http("DELETE", f"exchanges/{{vhost}}/{lab.name('x')}?if-unused=true")
    lab.http("DELETE", f"{bindings}/k")
    lab.http("DELETE", f"exchanges/{{vhost}}/{lab.name('x')}?if-unused=true")


@http_scenario
def a_binding_is_found_by_its_key(lab: Lab) -> None:
    bindings = _bindings(lab)
    lab.http("POST", bindings, {"routing_key": "k"})
    lab.http("POST", bindings, {"routing_key": "k"})
    lab.http("GET", f"{bindings}?{BINDING}")
    lab.http("GET", f"{bindings}/k?{BINDING}")
    lab.http("DELETE", f"{bindings}/k")
    lab.http("DELETE", f"{bindings}/k")
    lab.http("GET", f"{bindings}/k")


@http_scenario
def the_key_of_a_binding_is_quoted(lab: Lab) -> None:
    bindings = _bindings(lab)
    lab.http("POST", bindings, {"routing_key": "a.#"})
    lab.http("POST", bindings, {"routing_key": "a / ~"})
    lab.http("POST", bindings, {})
    rows = lab.http("GET", f"{bindings}?{BINDING}&sort=routing_key")
    for row in rows:
        lab.http("GET", f"{bindings}/{row['properties_key'].replace('%', '%25').replace('/', '%2F')}?{BINDING}")


@http_scenario
def a_binding_to_an_exchange_is_like_one_to_a_queue(lab: Lab) -> None:
    _exchange(lab)
    _exchange(lab, "y", "fanout")
    bindings = f"bindings/{{vhost}}/e/{lab.name('x')}/e/{lab.name('y')}"
    lab.http("POST", bindings, {"routing_key": "k"})
    lab.http("GET", f"{bindings}?{BINDING}")
    lab.http("GET", f"exchanges/{{vhost}}/{lab.name('y')}/bindings/destination?{BINDING}")


@http_scenario
def a_binding_of_something_missing_is_not_found(lab: Lab) -> None:
    x, q = lab.name("x"), lab.name("missing")
    _exchange(lab)
    lab.http("POST", f"bindings/{{vhost}}/e/{x}/q/{q}", {"routing_key": "k"})
    lab.http("POST", f"bindings/{{vhost}}/e/{q}/e/{x}", {"routing_key": "k"})


@http_scenario
def the_default_exchange_cannot_be_bound(lab: Lab) -> None:
    q = lab.queue(durable=True)
    bindings = f"bindings/{{vhost}}/e/amq.default/q/{q}"
    lab.http("POST", bindings, {"routing_key": "k"})
    lab.http("GET", f"{bindings}?{BINDING}")
    lab.http("DELETE", f"{bindings}/{q}")


@http_scenario
def a_void_argument_is_shown(lab: Lab) -> None:
    x = lab.name("x")
    ch = lab.channel()
    ch.call(Exchange.Declare, exchange=x, exchange_type="headers", durable=True, arguments={"n": None, "l": [None]})
    q = lab.queue(durable=True)
    ch.call(Queue.Bind, queue=q, exchange=x, arguments={"n": None, "t": {"n": None}})
    ch.call(Basic.Consume, queue=q, consumer_tag="c", arguments={"n": None})
    lab.http("GET", f"exchanges/{{vhost}}/{x}?columns=arguments")
    lab.http("GET", f"exchanges/{{vhost}}/{x}/bindings/source?columns=arguments")
    lab.http("GET", f"bindings/{{vhost}}/e/{x}/q/{q}?columns=arguments")
