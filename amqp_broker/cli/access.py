"""Commands for users, virtual hosts, permissions and limits."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Any

from amqp_broker.cli.command import Call, Command, Missing, Misuse, failed, path_of
from amqp_broker.cli.lists import ACCESS, NO_VHOST
from amqp_broker.cli.policies import json_of
from amqp_broker.exit_codes import EX_DATAERR, EX_NOUSER, EX_SOFTWARE, EX_UNAVAILABLE

USERS = "Users"
VHOSTS = "Virtual hosts"
NO_USER = Missing("/api/users/{0}", 'Error:\nUser "{0}" does not exist', EX_NOUSER)
NO_VHOST_NAMED = Missing("/api/vhosts/{0}", "Virtual host '{0}' does not exist", EX_DATAERR)
# What is missing for a permission, in the order in which RabbitMQ looks.
NO_PERMISSION = (
    Missing("/api/users/{0}", "Error:\nUser {0} does not exist", EX_NOUSER),
    Missing("/api/vhosts/{vhost}", "Error:\nVirtual host {vhost} does not exist", EX_UNAVAILABLE),
)


def add_user(call: Call) -> None:
    name, password = call.arguments
    target = f"/api/users/{path_of(name)}"
    if call.ask("GET", target).is_ok:
        raise failed(f'User "{name}" already exists', EX_SOFTWARE)
    call.request("PUT", target, {"password": password, "tags": ""})


def has_name(call: Call) -> None:
    if not call.arguments[0]:
        raise Misuse("Bad argument: user cannot be an empty string", EX_DATAERR)


def change_user(call: Call, **changed: Any) -> None:
    """Change some of what a user is, and keep the rest."""
    target = call.fill("/api/users/{0}", is_path=True)
    user = call.get(target)
    kept = {name: user[name] for name in ("tags", "password_hash", "hashing_algorithm") if name in user}
    if "password" in changed:
        kept = {"tags": kept["tags"]}
    call.request("PUT", target, {**kept, **changed})


def authenticate(call: Call) -> str:
    name, password = call.arguments
    if not call.ask("POST", "/_broker/authenticate", {"user": name, "password": password}).is_ok:
        sentence = f"Error: failed to authenticate user \"{name}\"\nuser '{name}' - invalid credentials"
        raise failed(sentence, EX_DATAERR)
    return "Success"


def hash_password(call: Call) -> str:
    """RabbitMQ's hash of a password, as definitions have it (salt and SHA-256 of both)."""
    salt = os.urandom(4)
    return base64.b64encode(salt + hashlib.sha256(salt + call.arguments[0].encode()).digest()).decode()


def tags(call: Call) -> None:
    """What the message says of tags."""
    call.options["tags"] = ", ".join(call.arguments[1:])


def add_vhost(call: Call) -> dict[str, Any]:
    given = {name: call.options.get(name) for name in ("description", "tags", "default_queue_type")}
    return {name: value for name, value in given.items() if value is not None}


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


def clear_topic_permissions(call: Call) -> None:
    target = call.fill("/api/topic-permissions/{vhost}/{0}", is_path=True)
    call.request("DELETE", "/".join([target, *map(path_of, call.arguments[1:])]))


def which_exchange(call: Call) -> None:
    call.options["what"] = f' on "{call.arguments[1]}"' if len(call.arguments) > 1 else ""


def set_limits(call: Call, target: str, text: str) -> None:
    limits = json_of(text)
    if not isinstance(limits, dict):
        raise failed("JSON decoding error. Reason: badarg")
    for name, value in limits.items():
        call.request("PUT", f"{target}/{path_of(name)}", {"value": value})


def clear_limits(call: Call, target: str, wanted: str) -> None:
    for item in call.get(target):
        for name in item["value"]:
            if wanted in ("all", name):
                call.request("DELETE", f"{target}/{path_of(name)}")


def vhost_target(call: Call) -> str:
    return call.fill("/api/vhost-limits/{vhost}", is_path=True)


def user_target(call: Call) -> str:
    return call.fill("/api/user-limits/{0}", is_path=True)


NO_SUCH_USER = Missing("/api/users/{0}", 'Error:\n{{:no_such_user, "{0}"}}', EX_UNAVAILABLE)

COMMANDS = (
    Command(
        "add_user",
        "<username> <password>",
        "Creates a new user in the internal database. This user will have no permissions for any virtual hosts by"
        " default.",
        USERS,
        says='Adding user "{0}" ...',
        check=has_name,
        run=add_user,
        done="Done. Don't forget to grant the user permissions to some virtual hosts! "
        "See 'rabbitmqctl help set_permissions' to learn more.",
    ),
    Command(
        "delete_user",
        "<username>",
        "Removes a user from the internal database. Has no effect on users provided by external backends such as LDAP",
        USERS,
        says='Deleting user "{0}" ...',
        asks=("DELETE", "/api/users/{0}"),
        missing=(NO_USER,),
    ),
    Command(
        "change_password",
        "<username> <password>",
        "Changes the user password",
        USERS,
        says='Changing password for user "{0}" ...',
        missing=(NO_USER,),
        run=lambda call: change_user(call, password=call.arguments[1]),
    ),
    Command(
        "clear_password",
        "<username>",
        "Clears (resets) password and disables password login for a user",
        USERS,
        says='Clearing password for user "{0}" ...',
        missing=(NO_USER,),
        run=lambda call: change_user(call, password_hash=""),
    ),
    Command(
        "authenticate_user",
        "<username> <password>",
        "Attempts to authenticate a user. Exits with a non-zero code if authentication fails.",
        USERS,
        says='Authenticating user "{0}" ...',
        run=authenticate,
    ),
    Command(
        "set_user_tags",
        "<username> <tag> [...]",
        "Sets user tags",
        USERS,
        says='Setting tags for user "{0}" to [{tags}] ...',
        check=tags,
        missing=(NO_USER,),
        run=lambda call: change_user(call, tags=call.arguments[1:]),
        counts=(1, 1000),
    ),
    Command(
        "hash_password",
        "<password>",
        "Hashes a plaintext password",
        USERS,
        run=hash_password,
        is_for_stopped=True,
    ),
    Command(
        "set_user_limits",
        "<username> <definition>",
        "Sets user limits",
        USERS,
        says='Setting user limits to "{1}" for user "{0}" ...',
        missing=(NO_SUCH_USER,),
        run=lambda call: set_limits(call, user_target(call), call.arguments[1]),
    ),
    Command(
        "clear_user_limits",
        "<username> <limit_type> | all",
        "Clears user connection/channel limits",
        USERS,
        says='Clearing "{1}" limit for user "{0}" ...',
        missing=(NO_SUCH_USER,),
        run=lambda call: clear_limits(call, user_target(call), call.arguments[1]),
    ),
    Command(
        "add_vhost",
        '<vhost> [--description <description> --tags "<tag1>,<tag2>,<...>" --default-queue-type '
        "<quorum|classic|stream>]",
        "Creates a virtual host",
        VHOSTS,
        says='Adding vhost "{0}" ...',
        asks=("PUT", "/api/vhosts/{0}"),
        body=add_vhost,
        counts=(1, 1),
    ),
    Command(
        "delete_vhost",
        "<vhost>",
        "Deletes a virtual host",
        VHOSTS,
        says='Deleting vhost "{0}" ...',
        asks=("DELETE", "/api/vhosts/{0}"),
        missing=(NO_VHOST_NAMED,),
    ),
    Command(
        "set_vhost_tags",
        "<vhost> <tag> [...]",
        "Sets virtual host tags",
        VHOSTS,
        says='Setting tags for virtual host "{0}" to [{tags}] ...',
        check=tags,
        asks=("PUT", "/api/vhosts/{0}"),
        body=lambda call: {"tags": ",".join(call.arguments[1:])},
        missing=(NO_VHOST_NAMED,),
        counts=(1, 1000),
    ),
    Command(
        "restart_vhost",
        "[--vhost <vhost>] [--timeout <timeout>]",
        "Restarts a failed vhost data stores and queues",
        VHOSTS,
        says="Trying to restart vhost '{vhost}' on node '{node}' ...",
        run=lambda call: (
            f"Vhost '{call.vhost}' is already running on node '{call.node}'"
            if call.get(call.fill("/api/vhosts/{vhost}", is_path=True))
            else None
        ),
        missing=(NO_VHOST,),
    ),
    Command(
        "trace_on",
        "[--vhost <vhost>]",
        "Starts tracing: messages are also published to amq.rabbitmq.trace",
        VHOSTS,
        says='Starting tracing for vhost "{vhost}" ...',
        missing=(NO_VHOST,),
        run=lambda call: trace(call, True),
        counts=(0, 1),
    ),
    Command(
        "trace_off",
        "[--vhost <vhost>]",
        "Stops tracing",
        VHOSTS,
        says='Stopping tracing for vhost "{vhost}" ...',
        missing=(NO_VHOST,),
        run=lambda call: trace(call, False),
        counts=(0, 1),
    ),
    Command(
        "set_vhost_limits",
        "[--vhost <vhost>] <definition>",
        "Sets virtual host limits",
        VHOSTS,
        says='Setting vhost limits to "{0}" for vhost "{vhost}" ...',
        missing=(NO_VHOST,),
        run=lambda call: set_limits(call, vhost_target(call), call.arguments[0]),
    ),
    Command(
        "clear_vhost_limits",
        "[--vhost <vhost>]",
        "Clears virtual host limits",
        VHOSTS,
        says='Clearing vhost "{vhost}" limits ...',
        missing=(NO_VHOST,),
        run=lambda call: clear_limits(call, vhost_target(call), "all"),
    ),
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
        asks=("DELETE", "/api/permissions/{vhost}/{0}"),
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


def trace(call: Call, is_on: bool) -> str:
    """Tell messages of a vhost to its firehose, or no longer."""
    call.request("PUT" if is_on else "DELETE", call.fill("/_broker/trace/{vhost}", is_path=True))
    return f"Trace {'enabled' if is_on else 'disabled'} for vhost {call.vhost}"
