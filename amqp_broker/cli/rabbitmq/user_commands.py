"""Commands for users."""

from __future__ import annotations

import os
from typing import Any

from amqp_broker.cli.rabbitmq.command import NO_SUCH_USER, Call, Command, Former, Missing, failed
from amqp_broker.cli.rabbitmq.words import Misuse, path_of
from amqp_broker.exit_codes import EX_DATAERR, EX_NOUSER, EX_SOFTWARE

USERS = "Users"
NO_USER = Missing("/api/users/{0}", 'Error:\nUser "{0}" does not exist', EX_NOUSER)


def add_user(call: Call) -> None:
    name, password = call.arguments
    target = f"/api/users/{path_of(name)}"
    if call.ask("GET", target).is_ok:
        raise failed(f'User "{name}" already exists', EX_SOFTWARE)
    word = "password_hash" if call.options.get("pre_hashed_password") else "password"
    call.request("PUT", target, {word: password, "tags": ""})


def delete_user(call: Call) -> None:
    answer = call.ask("DELETE", call.fill("/api/users/{0}", is_path=True))
    # RabbitMQ 4 does not mind a missing user.
    if not answer.is_ok and (answer.status != 404 or call.is_before(4, 0)):
        raise call.failure_of(answer)


def has_name(call: Call) -> None:
    if not call.arguments[0]:
        raise Misuse("Bad argument: user cannot be an empty string", EX_DATAERR)
    if call.options.get("pre_hashed_password"):
        import base64

        try:
            base64.b64decode(call.arguments[1], validate=True)
        except ValueError:
            raise Misuse("Bad argument: Could not Base64 decode provided password hash value", EX_DATAERR) from None


def change_user(call: Call, **changed: Any) -> None:
    """Change some fields of a user and keep the others."""
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
    """Return the hash of a password as in definitions: salt, and SHA-256 of salt and password."""
    # Few commands need these, and hashlib loads OpenSSL.
    import base64
    import hashlib

    salt = os.urandom(4)
    return base64.b64encode(salt + hashlib.sha256(salt + call.arguments[0].encode()).digest()).decode()


COMMANDS = (
    Command(
        "add_user",
        "<username> [<password>] [<password_hash> --pre-hashed-password]",
        "Creates a new user in the internal database. This user will have no permissions for any virtual hosts by"
        " default.",
        USERS,
        says='Adding user "{0}" ...',
        check=has_name,
        run=add_user,
        counts=(2, 2),
        former=Former((4, 0), {"usage": "<username> <password>"}),
        done="Done. Don't forget to grant the user permissions to some virtual hosts! "
        "See 'rabbitmqctl help set_permissions' to learn more.",
    ),
    Command(
        "delete_user",
        "<username>",
        "Removes a user from the internal database. Has no effect on users provided by external backends such as LDAP",
        USERS,
        says='Deleting user "{0}" ...',
        run=delete_user,
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
        missing=(NO_SUCH_USER,),
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
        says='Setting tags for user "{0}" to [{rest}] ...',
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
)
