"""Commands for policies and parameters."""

from __future__ import annotations

from typing import Any

from amqp_broker.cli.rabbitmq.command import NO_VHOST, Call, Command, json_of

POLICY_USAGE = "[--vhost <vhost>] [--priority <priority>] [--apply-to <apply-to>] <name> <pattern> <definition>"
NO_PARAMETER = "Parameter does not exist"


def defaults(call: Call) -> None:
    call.options.setdefault("priority", 0)
    call.options.setdefault("apply_to", "all")


def policy(call: Call) -> dict[str, Any]:
    _, pattern, definition = call.arguments
    return {
        "pattern": pattern,
        "definition": json_of(call, definition),
        "priority": call.options["priority"],
        "apply-to": call.options["apply_to"],
    }


def setter(kind: str, what: str, about: str, noun: str) -> Command:
    return Command(
        f"set_{kind}",
        POLICY_USAGE,
        about,
        "Policies",
        says=f'Setting {what} "{{0}}" for pattern "{{1}}" to "{{2}}" with priority "{{priority}}" for vhost '
        '"{vhost}" ...',
        check=defaults,
        asks=("PUT", f"/api/{noun}/{{vhost}}/{{0}}"),
        body=policy,
        missing=(NO_VHOST,),
    )


def clearer(kind: str, what: str, about: str, noun: str) -> Command:
    return Command(
        f"clear_{kind}",
        "[--vhost <vhost>] <name>",
        about,
        "Policies",
        says=f'Clearing {what} "{{0}}" on vhost "{{vhost}}" ...',
        asks=("DELETE", f"/api/{noun}/{{vhost}}/{{0}}"),
        otherwise=NO_PARAMETER,
    )


COMMANDS = (
    setter("policy", "policy", "Sets or updates a policy", "policies"),
    clearer("policy", "policy", "Clears (removes) a policy", "policies"),
    setter(
        "operator_policy",
        "operator policy override",
        "Sets an operator policy that overrides a subset of arguments in user policies",
        "operator-policies",
    ),
    clearer("operator_policy", "operator policy", "Clears an operator policy", "operator-policies"),
    Command(
        "set_parameter",
        "[--vhost <vhost>] <component_name> <name> <value>",
        "Sets a runtime parameter.",
        "Parameters",
        says='Setting runtime parameter "{1}" for component "{0}" to "{2}" in vhost "{vhost}" ...',
        asks=("PUT", "/api/parameters/{0}/{vhost}/{1}"),
        body=lambda call: {"value": json_of(call, call.arguments[2])},
        missing=(NO_VHOST,),
    ),
    Command(
        "clear_parameter",
        "[--vhost <vhost>] <component_name> <name>",
        "Clears a runtime parameter.",
        "Parameters",
        says='Clearing runtime parameter "{1}" for component "{0}" on vhost "{vhost}" ...',
        asks=("DELETE", "/api/parameters/{0}/{vhost}/{1}"),
        otherwise=NO_PARAMETER,
    ),
    Command(
        "set_global_parameter",
        "<name> <value>",
        "Sets a runtime parameter.",
        "Parameters",
        says='Setting global runtime parameter "{0}" to "{1}" ...',
        asks=("PUT", "/api/global-parameters/{0}"),
        body=lambda call: {"name": call.arguments[0], "value": json_of(call, call.arguments[1])},
    ),
    Command(
        "clear_global_parameter",
        "<name>",
        "Clears a global runtime parameter",
        "Parameters",
        says='Clearing global runtime parameter "{0}" ...',
        asks=("DELETE", "/api/global-parameters/{0}"),
        otherwise=NO_PARAMETER,
    ),
)
