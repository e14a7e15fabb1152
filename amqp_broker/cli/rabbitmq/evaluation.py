"""`rabbitmqctl eval`: the Erlang expressions that scripts and test suites use, by pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from amqp_broker.cli.rabbitmq.columns import Atom
from amqp_broker.cli.rabbitmq.command import Call, failed, octets_of
from amqp_broker.cli.rabbitmq.formatters import erlang
from amqp_broker.cli.rabbitmq.node_commands import in_octets, share_of
from amqp_broker.cli.rabbitmq.node_status import status_of
from amqp_broker.cli.rabbitmq.words import Misuse

OK = Atom("ok")
Expression = Callable[[Call, re.Match[str]], Any]


def alarms(call: Call, found: re.Match[str]) -> str:
    limits: list[Any] = [
        ((Atom("resource_limit"), Atom(name), Atom(call.node)), []) for name in status_of(call)["alarms"]
    ]
    return erlang(limits)


def set_alarm(call: Call, found: re.Match[str]) -> Atom:
    call.request("PUT", f"/_broker/alarms/{found['resource']}")
    return OK


def clear_alarm(call: Call, found: re.Match[str]) -> Atom:
    call.request("DELETE", f"/_broker/alarms/{found['resource']}")
    return OK


def set_variable(call: Call, found: re.Match[str]) -> Atom:
    """Set a setting that advanced.config knows; it applies to new connections and queues."""
    term = f"[{{{found['application']},[{{{found['key']},{found['value']}}}]}}]."
    call.request("PUT", "/_broker/environment", {"value": term})
    return OK


def value_of(call: Call, key: str) -> Any:
    """Return the value of a setting by the name of its variable, or None."""
    from amqp_broker.cli.rabbitmq import application_environment

    found = application_environment.of(status_of(call)["settings"]).get("rabbit", {}).get(key)
    return application_environment.terms(found) if isinstance(found, dict) else found


def variable(call: Call, found: re.Match[str]) -> Any:
    """Return the value of a setting as of a variable of the application."""
    value = value_of(call, found["key"])
    return Atom("undefined") if value is None else erlang((OK, value))


def matched_variable(call: Call, found: re.Match[str]) -> str:
    """Return the value that a match with {ok, V} gives. Raises Failure for a variable that is not set."""
    value = value_of(call, found["key"])
    if value is None:
        raise failed("{:badmatch, :undefined}")
    return erlang(value)


def variable_or_default(call: Call, found: re.Match[str]) -> str:
    """Return the value of a setting, or the given one."""
    value = value_of(call, found["key"])
    return str(found["value"]).strip() if value is None else erlang(value)


def set_memory_limit(call: Call, found: re.Match[str]) -> Atom:
    given = found.groupdict()
    value = share_of(given["share"]) if "share" in given else in_octets(given["octets"])
    call.request("PUT", "/_broker/memory-limit", {"value": value})
    return OK


def set_disk_limit(call: Call, found: re.Match[str]) -> Atom:
    call.request("PUT", "/_broker/disk-free-limit", {"value": in_octets(found["octets"])})
    return OK


def pattern(expression: str) -> re.Pattern[str]:
    """Return the pattern of an expression; NODE, RESOURCE and other names stand for values, spaces for any spaces."""
    values = {
        "NODE": r"(?:node\(\)|'[^']+'|[\w.@-]+)",
        "RESOURCE": r"(?P<resource>memory|disk)",
        "APPLICATION": r"(?P<application>\w+)",
        "KEY": r"(?P<key>\w+)",
        "VALUE": r"(?P<value>.+)",
        "NAME": r"(?P<name>[A-Z_]\w*)",
        "SAME": r"(?P=name)",
        "SHARE": r"(?P<share>\d+\.\d+)",
        "OCTETS": r"(?P<octets>\d+)",
    }
    parts = (values.get(token) or re.escape(token) for token in re.findall(r"\w+|[^\w\s]", expression))
    return re.compile(r"\s*".join(parts), re.DOTALL)


EXPRESSIONS: dict[str, Expression] = {
    "node()": lambda call, found: Atom(call.node),
    "erlang:node()": lambda call, found: Atom(call.node),
    "rabbit:is_running()": lambda call, found: call.state()["state"] == "running",
    "rabbit_nodes:cluster_name()": lambda call, found: f'<<"{call.get("/api/overview")["cluster_name"]}">>',
    "rabbit_misc:version()": lambda call, found: f'"{call.state()["version"]}"',
    "rabbit_alarm:get_alarms()": alarms,
    "rabbit_alarm:set_alarm({{resource_limit, RESOURCE, NODE}, []})": set_alarm,
    "rabbit_alarm:clear_alarm({resource_limit, RESOURCE, NODE})": clear_alarm,
    "application:set_env(APPLICATION, KEY, VALUE)": set_variable,
    "application:get_env(APPLICATION, KEY)": variable,
    "application:get_env(APPLICATION, KEY, VALUE)": variable_or_default,
    "{ok, NAME} = application:get_env(APPLICATION, KEY), SAME": matched_variable,
    "vm_memory_monitor:set_vm_memory_high_watermark(SHARE)": set_memory_limit,
    "vm_memory_monitor:set_vm_memory_high_watermark({absolute, OCTETS})": set_memory_limit,
    "rabbit_disk_monitor:set_disk_free_limit(OCTETS)": set_disk_limit,
}


def check_expression(call: Call) -> None:
    if not call.arguments[0].rstrip().endswith("."):
        raise Misuse('"syntax error before: "')


def check_file(call: Call) -> None:
    path = call.arguments[0]
    if not os.path.isfile(path):  # noqa: PTH113
        raise Misuse(f'"File {path} does not exist"')
    call.arguments[0] = octets_of(path).decode("utf-8", "replace")
    check_expression(call)


def evaluate(call: Call) -> Any:
    """Return the value of an expression. Raises Failure for one that this broker does not know."""
    expression = call.arguments[0].strip().removesuffix(".").strip()
    for known, run in EXPRESSIONS.items():
        if found := pattern(known).fullmatch(expression):
            return run(call, found)
    raise failed(f"this broker has no Erlang; it evaluates only {', '.join(EXPRESSIONS)}")
