"""Commands for the limits of users and of virtual hosts."""

from __future__ import annotations

from typing import Any

from amqp_broker.cli.rabbitmq.columns import json_text
from amqp_broker.cli.rabbitmq.command import BOTH, NO_SUCH_USER, NO_VHOST, Call, Command, Missing, json_of, not_json
from amqp_broker.cli.rabbitmq.tool import Report, Rows
from amqp_broker.cli.rabbitmq.words import path_of
from amqp_broker.exit_codes import EX_UNAVAILABLE

USERS = "Users"
VHOSTS = "Virtual hosts"


def user_target(call: Call) -> str:
    return call.fill("/api/user-limits/{0}", is_path=True)


def vhost_parameter(call: Call) -> str:
    return call.fill("/api/parameters/vhost-limits/{vhost}/limits", is_path=True)


def limits_of(call: Call, text: str) -> dict[str, Any]:
    """Return limits that are given as a JSON object. Raises Failure."""
    limits = json_of(call, text)
    if not isinstance(limits, dict):
        raise not_json(call, text)
    return limits


def set_user_limits(call: Call) -> None:
    """Set some limits of a user, who keeps the others, as in RabbitMQ. Raises Failure, and sets none, if one is wrong.

    Source: rabbit_auth_backend_internal.erl, set_user_limits. The broker refuses a wrong one, which is therefore first.
    """
    limits = limits_of(call, call.arguments[1])
    for name in sorted(limits, key=lambda name: is_user_limit(name, limits[name])):
        call.request("PUT", f"{user_target(call)}/{path_of(name)}", {"value": limits[name]})


def is_user_limit(name: str, value: object) -> bool:
    """Return whether the broker takes this limit."""
    return name in ("max-connections", "max-channels") and type(value) is int and -(1 << 63) <= value < 1 << 63


def set_vhost_limits(call: Call) -> None:
    """Replace all limits of a vhost, as RabbitMQ does."""
    limits = limits_of(call, call.arguments[0])
    call.request(
        "PUT",
        vhost_parameter(call),
        {"component": "vhost-limits", "vhost": call.vhost, "name": "limits", "value": limits},
    )


def clear_limits(call: Call, target: str, wanted: str) -> None:
    for item in call.get(target):
        for name in item["value"]:
            if wanted in ("all", name):
                call.request("DELETE", f"{target}/{path_of(name)}")


def clear_vhost_limits(call: Call) -> None:
    if call.get(call.fill("/api/vhost-limits/{vhost}", is_path=True)):
        call.request("DELETE", vhost_parameter(call))


def list_limits(call: Call, kind: str, name: str) -> Rows | Report:
    """Return the limits of a user or a vhost, or with --global those of all."""
    target = f"/api/{kind}-limits"
    if call.options.get("global"):
        rows = [[item[kind], json_text(item["value"])] for item in call.get(target)]
        return Rows([kind, "limits"], rows, is_whole=True)
    limits = call.get(f"{target}/{path_of(name)}")
    value = limits[0]["value"] if limits else {}
    # RabbitMQ prints an empty line for a vhost without limits, and {} for a user without limits.
    return Report(json_text(value) if limits or kind == "user" else "", value)


def name_vhosts(call: Call) -> None:
    call.options["what"] = "all vhosts" if call.options.get("global") else f'vhost "{call.vhost}"'


def name_users(call: Call) -> None:
    user = call.options.setdefault("user", "guest")
    call.options["what"] = "all users" if call.options.get("global") else f'user "{user}"'


def name_limits(call: Call) -> None:
    call.options["what"] = "all limits" if call.arguments[1] == "all" else f'"{call.arguments[1]}" limit'


COMMANDS = (
    Command(
        "set_user_limits",
        "<username> <definition>",
        "Sets user limits",
        USERS,
        says='Setting user limits to "{1}" for user "{0}" ...',
        missing=(NO_SUCH_USER,),
        run=set_user_limits,
    ),
    Command(
        "clear_user_limits",
        "<username> <limit_type> | all",
        "Clears user connection/channel limits",
        USERS,
        says='Clearing {what} for user "{0}" ...',
        check=name_limits,
        missing=(NO_SUCH_USER,),
        run=lambda call: clear_limits(call, user_target(call), call.arguments[1]),
    ),
    Command(
        "list_user_limits",
        "[--user <username>] [--global]",
        "Displays configured user limits",
        USERS,
        says="Listing limits for {what} ...",
        check=name_users,
        missing=(Missing("/api/users/{user}", 'Error:\n{{:no_such_user, "{user}"}}', EX_UNAVAILABLE),),
        run=lambda call: list_limits(call, "user", call.options["user"]),
        tools=BOTH,
    ),
    Command(
        "set_vhost_limits",
        "[--vhost <vhost>] <definition>",
        "Sets virtual host limits",
        VHOSTS,
        says='Setting vhost limits to "{0}" for vhost "{vhost}" ...',
        missing=(NO_VHOST,),
        run=set_vhost_limits,
    ),
    Command(
        "clear_vhost_limits",
        "[--vhost <vhost>]",
        "Clears virtual host limits",
        VHOSTS,
        says='Clearing vhost "{vhost}" limits ...',
        missing=(Missing("/api/vhosts/{vhost}", "Error:\nParameter does not exist", EX_UNAVAILABLE),),
        run=clear_vhost_limits,
    ),
    Command(
        "list_vhost_limits",
        "[--vhost <vhost>] [--global] [--no-table-headers]",
        "Displays configured virtual host limits",
        VHOSTS,
        says="Listing limits for {what} ...",
        check=name_vhosts,
        missing=(NO_VHOST,),
        run=lambda call: list_limits(call, "vhost", call.vhost),
        tools=BOTH,
    ),
)
