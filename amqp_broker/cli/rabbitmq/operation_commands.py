"""Commands for definitions, feature flags, connections and queues."""

from __future__ import annotations

import json
import os
import time

from amqp_broker.cli.rabbitmq.columns import pid_of
from amqp_broker.cli.rabbitmq.command import (
    NO_OBJECT,
    OPERATIONS,
    Call,
    Former,
    Missing,
    failed,
    json_of,
    octets_of,
    simple,
)
from amqp_broker.cli.rabbitmq.evaluation import check_expression, evaluate
from amqp_broker.cli.rabbitmq.evaluation import check_file as check_erlang_file
from amqp_broker.cli.rabbitmq.words import Misuse, path_of
from amqp_broker.cli.shared.progress_bar import showing_progress
from amqp_broker.cli.shared.standard_streams import read_input
from amqp_broker.exit_codes import EX_DATAERR, EX_UNAVAILABLE, EX_USAGE

# Definitions


def export_definitions(call: Call) -> None:
    path = call.arguments[0]
    text = json.dumps(call.get("/api/definitions"), separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    if path == "-":
        print(text, end="")
        return
    try:
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
    except OSError as error:
        raise failed(f"cannot write '{path}': {error.strerror}") from None


def check_file(call: Call) -> None:
    path = call.arguments[0]
    if path != "-" and not os.path.isfile(path):  # noqa: PTH113
        raise Misuse(f"Bad argument: File {path} does not exist", EX_DATAERR)
    call.options["what"] = "standard input" if path == "-" else f'a file at "{path}"'


def check_definitions(call: Call, text: str) -> None:
    """Raise Failure for a text that is not JSON."""
    if call.is_before(4, 0):
        json_of(call, text)
        return
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        place = error.pos
        reason = f'{{:unexpected_byte, "0x{ord(text[place]):X}", {place}}}' if text[place:] else ":unexpected_end"
    except RecursionError:
        reason = ":too_deep"
    else:
        return
    raise failed(f"Failed to deserialise input (format: JSON) (error: {reason})", EX_DATAERR)


def import_definitions(call: Call) -> str:
    path = call.arguments[0]
    octets = read_input() if path == "-" else octets_of(path)
    check_definitions(call, octets.decode("utf-8", "replace"))
    with showing_progress("Importing definitions"):
        call.request("POST", "/api/definitions", octets)
    return "Successfully started definition import. This process is asynchronous and can take some time."


def says_export(call: Call) -> None:
    if call.arguments[0] == "-":
        call.options["quiet"] = True
    call.options["what"] = f'a file at "{call.arguments[0]}"'


# Connections and queues


def close_connection(call: Call) -> None:
    wanted, explanation = call.arguments
    for connection in call.get("/api/connections"):
        if wanted in (connection["name"], pid_of(call.node, connection["name"])):
            close(call, connection["name"], explanation)
            return
    raise failed(f'Error:\n{{:invalid_pid_syntax, "{wanted}"}}')


def close(call: Call, name: str, explanation: str) -> None:
    # A connection that has gone meanwhile counts as closed.
    call.ask("DELETE", f"/api/connections/{path_of(name)}", X_Reason=explanation)


def close_all(call: Call, field: str, wanted: str | None) -> int:
    """Close the connections of a user or vhost, or all (None), and return their number."""
    names = [item["name"] for item in call.get("/api/connections") if wanted in (None, item.get(field))]
    names = names[: call.options.get("limit") or None]
    with showing_progress("Closing connections", len(names)) as progress:
        for name in names:
            close(call, name, call.arguments[-1])
            time.sleep(call.options.get("per_connection_delay", 0) / 1000)
            progress.step()
    return len(names)


def where_connections(call: Call) -> None:
    call.options["where"] = f"to node {call.node}" if call.options.get("global") else f"in vhost {call.vhost}"


def close_all_connections(call: Call) -> str:
    vhost = None if call.options.get("global") else call.vhost
    return f"Closed {close_all(call, 'vhost', vhost)} connections"


def close_all_user_connections(call: Call) -> None:
    close_all(call, "user", call.arguments[0])


def delete_conditions(call: Call) -> None:
    given = [f"if queue is {word} " for word in ("empty", "unused") if call.options.get(f"if_{word}")]
    call.options["when"] = "and ".join(given)


def delete_queue(call: Call) -> str:
    target = call.fill("/api/queues/{vhost}/{0}", is_path=True)
    found = call.ask("GET", target)
    if found.status == 404:
        raise failed("Queue not found" if call.is_before(4, 1) else "No such queue was found", EX_USAGE)
    conditions = [f"if-{word}=true" for word in ("empty", "unused") if call.options.get(f"if_{word}")]
    answer = call.ask("DELETE", "?".join([target, "&".join(conditions)]) if conditions else target)
    if not answer.is_ok:
        if "empty" in answer.reason:
            raise failed("Queue is not empty", EX_USAGE)
        if "in use" in answer.reason:
            raise failed("Queue is in use", EX_USAGE)
        raise failed(answer.reason)
    return f"Queue was successfully deleted with {found.value.get('messages', 0)} ready messages"


def purge_queue(call: Call) -> None:
    with showing_progress("Purging"):
        call.request("DELETE", call.fill("/api/queues/{vhost}/{0}/contents", is_path=True))


def enable_feature(call: Call) -> None:
    name = call.arguments[0]
    flags = [flag["name"] for flag in call.get("/api/feature-flags")]
    if name != "all" and name not in flags:
        raise failed(f"This feature flag is not supported by node {call.node}", EX_USAGE)
    for flag in flags if name == "all" else [name]:
        call.request("PUT", f"/api/feature-flags/{path_of(flag)}/enable", {"name": flag})


def says_flags(call: Call) -> None:
    name = call.arguments[0]
    call.options["what"] = "all feature flags" if name == "all" else f'feature flag "{name}"'


NO_QUEUE = Missing("/api/queues/{vhost}/{0}", NO_OBJECT, EX_DATAERR)
NO_QUEUE_BEFORE_4 = Missing(NO_QUEUE.path, "Error:\nnot_found", EX_UNAVAILABLE)

COMMANDS = (
    simple(
        "export_definitions",
        '<file_path | "-"> [--format <json | erlang>] [--timeout <timeout>]',
        "Exports definitions in JSON or compressed Erlang Term Format.",
        "Definitions",
        "Exporting definitions in JSON to {what} ...",
        check=says_export,
        run=export_definitions,
        timeout_s=300.0,
    ),
    simple(
        "import_definitions",
        "<file_path> [--format <json | erlang>] [--skip-if-unchanged] [--timeout <timeout>]",
        "Imports definitions in JSON or compressed Erlang Term Format.",
        "Definitions",
        "Importing definitions in JSON from {what} ...",
        check=check_file,
        run=import_definitions,
        timeout_s=300.0,
        former=Former(
            (4, 1),
            {
                "usage": '<file_path | "-"> [--format <json | erlang>] [--skip-if-unchanged] [--timeout <timeout>]',
            },
        ),
    ),
    simple(
        "enable_feature_flag",
        "[--opt-in] <all | feature_flag>",
        "Enables a feature flag or all supported feature flags on the target node",
        "Feature flags",
        "Enabling {what} ...",
        check=says_flags,
        run=enable_feature,
    ),
    simple(
        "close_connection",
        "<connection pid> <explanation>",
        "Instructs the broker to close the connection associated with the Erlang process id",
        OPERATIONS,
        "Closing connection {0}, reason: {1}...",
        run=close_connection,
    ),
    simple(
        "close_all_connections",
        "[--vhost <vhost> --limit <limit>] [-n <node> --global] [--per-connection-delay <delay>] <explanation>",
        "Instructs the broker to close all connections for the specified vhost or entire RabbitMQ node",
        OPERATIONS,
        "Closing all connections {where}, reason: {0}...",
        check=where_connections,
        run=close_all_connections,
        counts=(1, 1),
    ),
    simple(
        "close_all_user_connections",
        "<username> <explanation>",
        "Instructs the broker to close all connections of the specified user",
        OPERATIONS,
        "Closing connections of user {0}, reason: {1}...",
        run=close_all_user_connections,
    ),
    simple(
        "eval",
        "<expression>",
        "Evaluates a snippet of Erlang code on the target node",
        OPERATIONS,
        "",
        check=check_expression,
        run=evaluate,
    ),
    simple(
        "eval_file",
        "<file path>",
        "Evaluates a file that contains a snippet of Erlang code on the target node",
        OPERATIONS,
        "",
        check=check_erlang_file,
        run=evaluate,
    ),
    simple(
        "delete_queue",
        "[--vhost <vhost>] <queue_name> [--if-empty|-e] [--if-unused|-u] [--force] [--timeout <timeout>]",
        "Deletes a queue",
        "Queues",
        "Deleting queue '{0}' on vhost '{vhost}' {when}...",
        check=delete_conditions,
        run=delete_queue,
    ),
    simple(
        "purge_queue",
        "<queue> [--timeout <timeout>]",
        "Purges a queue (removes all messages in it)",
        "Queues",
        "Purging queue '{0}' in vhost '{vhost}' ...",
        run=purge_queue,
        missing=(NO_QUEUE,),
        former=Former((4, 0), {"missing": (NO_QUEUE_BEFORE_4,)}),
    ),
)
