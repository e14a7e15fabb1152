"""Commands for permissions and topic permissions."""

from __future__ import annotations

from amqp_broker.cli.rabbitmq.command import Call, Command, Missing
from amqp_broker.cli.rabbitmq.list_commands import ACCESS
from amqp_broker.cli.rabbitmq.words import path_of
from amqp_broker.exit_codes import EX_NOUSER, EX_UNAVAILABLE

# Objects that a permission requires, in the order in which RabbitMQ checks them.
NO_PERMISSION = (
    Missing("/api/users/{0}", "Error:\nUser {0} does not exist", EX_NOUSER),
    Missing("/api/vhosts/{vhost}", "Error:\nVirtual host {vhost} does not exist", EX_UNAVAILABLE),
)


def permission(call: Call) -> dict[str, str]:
    _, configure, write, read = call.arguments
    return {"configure": configure, "write": write, "read": read}


def set_permissions_globally(call: Call) -> None:
    for vhost in call.get("/api/vhosts"):
        target = f"/api/permissions/{path_of(vhost['name'])}/{path_of(call.arguments[0])}"
        call.request("PUT", target, permission(call))


def topic_permission(call: Call) -> dict[str, str]:
    _, exchange, write, read = call.arguments
    return {"exchange": exchange, "write": write, "read": read}


def clear_permissions(call: Call) -> None:
    clear(call, call.fill("/api/permissions/{vhost}/{0}", is_path=True))


def clear_topic_permissions(call: Call) -> None:
    target = call.fill("/api/topic-permissions/{vhost}/{0}", is_path=True)
    clear(call, "/".join([target, *map(path_of, call.arguments[1:])]))


def clear(call: Call, target: str) -> None:
    """Delete permissions. RabbitMQ 4 does not mind a missing user or vhost. Raise Failure."""
    answer = call.ask("DELETE", target)
    if answer.is_ok:
        return
    needed = [call.fill(path, is_path=True) for path in ("/api/users/{0}", "/api/vhosts/{vhost}")]
    if call.is_before(4, 0) or all(call.ask("GET", path).is_ok for path in needed):
        raise call.failure_of(answer)


def which_exchange(call: Call) -> None:
    call.options["what"] = f' on "{call.arguments[1]}"' if len(call.arguments) > 1 else ""


COMMANDS = (
    Command(
        "set_permissions",
        "[--vhost <vhost>] <username> <conf> <write> <read>",
        "Sets user permissions for a vhost",
        ACCESS,
        says='Setting permissions for user "{0}" in vhost "{vhost}" ...',
        asks=("PUT", "/api/permissions/{vhost}/{0}"),
        body=permission,
        missing=NO_PERMISSION,
    ),
    Command(
        "set_permissions_globally",
        "<username> <conf> <write> <read>",
        "Sets user permissions for all virtual hosts",
        ACCESS,
        says='Setting permissions for user "{0}" in all virtual hosts ...',
        run=set_permissions_globally,
        missing=NO_PERMISSION[:1],
    ),
    Command(
        "clear_permissions",
        "[--vhost <vhost>] <username>",
        "Revokes user permissions for a vhost",
        ACCESS,
        says='Clearing permissions for user "{0}" in vhost "{vhost}" ...',
        run=clear_permissions,
        missing=NO_PERMISSION,
    ),
    Command(
        "set_topic_permissions",
        "[--vhost <vhost>] <username> <exchange> <write> <read>",
        "Sets user topic permissions for an exchange",
        ACCESS,
        says='Setting topic permissions on "{1}" for user "{0}" in vhost "{vhost}" ...',
        asks=("PUT", "/api/topic-permissions/{vhost}/{0}"),
        body=topic_permission,
        missing=NO_PERMISSION,
    ),
    Command(
        "clear_topic_permissions",
        "[--vhost <vhost>] <username> [<exchange>]",
        "Clears user topic permissions for a vhost or exchange",
        ACCESS,
        says='Clearing topic permissions{what} for user "{0}" in vhost "{vhost}" ...',
        check=which_exchange,
        run=clear_topic_permissions,
        missing=NO_PERMISSION,
    ),
)
