"""rabbitmq-diagnostics: commands about the process, its network, TLS and Erlang."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from typing import Any, NoReturn

from amqp_broker.cli.rabbitmq.columns import POLICIES
from amqp_broker.cli.rabbitmq.command import (
    BOTH,
    CTL,
    DIAGNOSTICS,
    NO_OBJECT,
    OPERATIONS,
    QUEUES,
    Call,
    Command,
    Failure,
    failed,
)
from amqp_broker.cli.rabbitmq.formatters import json_line
from amqp_broker.cli.rabbitmq.node_commands import nothing
from amqp_broker.cli.rabbitmq.node_status import interface_of, status_of
from amqp_broker.cli.rabbitmq.tool import Report, Rows
from amqp_broker.cli.rabbitmq.words import Misuse
from amqp_broker.exit_codes import EX_DATAERR

CHECKS, CONFIGURATION = "Monitoring, observability and health checks", "Configuration and Environment"
TIMEOUT = "[--timeout <timeout>]"
INITIALIZED = "Metadata store on node {node} has completed its initialization"
NO_REPLICAS = "Node {node} reported no queues with promotable replicas"
NO_ERLANG = "this broker has no Erlang virtual machine: it runs on Python"
NO_ENCRYPTION = "this broker encrypts no values, and reads none that are encrypted"
RESOLVER = """Runtime Hostname Resolver (inetrc) Settings

Lookup order: native
Hosts file: /etc/hosts
Resolver conf file: /etc/resolv.conf
Cache size:{space}

inetrc File Host Entries

(none)""".format(space=" ")


def refusing(reason: str) -> Callable[[Call], NoReturn]:
    """Return a function for a command that cannot do its work here."""

    def refuse(call: Call) -> NoReturn:
        raise failed(reason)

    return refuse


def missing_function(name: str) -> Callable[[Call], NoReturn]:
    """Return a function that fails as RabbitMQ 4 does, where an Erlang function was removed."""
    return refusing(f"{{:undef, [{{:rabbit_mirror_queue_misc, :{name}_for_cli, [], []}}]}}")


def saying(text: str) -> Callable[[Call], str]:
    return lambda call: call.fill(text)


def check_deprecated(call: Call) -> str:
    used = [feature["name"] for feature in call.get("/api/deprecated-features/used")]
    if used:
        raise failed(f"[{', '.join(f':{name}' for name in used)}]")
    return "Cluster reported no deprecated features in use"


def certificates(call: Call) -> str:
    """Return the certificates that listeners with TLS present."""
    import ssl

    texts = []
    for item in status_of(call)["listeners"]:
        if item["protocol"].endswith("/ssl") or item["protocol"].startswith("https"):
            host = {"::": "::1", "0.0.0.0": "127.0.0.1"}.get(item["host"], item["host"])
            try:
                text = ssl.get_server_certificate((host, item["port"]))
            except OSError as error:
                raise failed(f"cannot read the certificate of port {item['port']}: {error}") from None
            texts.append(f"Interface: {interface_of(item)}, port: {item['port']}\n{text}")
    return "\n".join(texts) or "#{}"


def cipher_suites(call: Call) -> str:
    import ssl

    names = [cipher["name"] for cipher in ssl.create_default_context().get_ciphers()]
    if call.formatter == "json":
        return "[\n" + "\n,".join(map(json_line, names)) + "\n]"
    return "\n".join(names)


def tls_versions(call: Call) -> str:
    """Return the versions in RabbitMQ's format, which has nothing between them."""
    import ssl

    names = {"tlsv1.3": ssl.HAS_TLSv1_3, "tlsv1.2": ssl.HAS_TLSv1_2, "tlsv1.1": ssl.HAS_TLSv1_1, "tlsv1": ssl.HAS_TLSv1}
    return "".join(name for name, is_there in names.items() if is_there)


def interfaces(call: Call) -> str:
    """Return the network interfaces of this machine, with hardware addresses where the system shows them."""
    from pathlib import Path

    texts = []
    for _, name in sorted(socket.if_nameindex(), key=lambda item: item[1]):
        try:
            address = Path(f"/sys/class/net/{name}/address").read_text("ascii").strip()
        except OSError:
            address = ""
        lines = [f"hwaddr: {address.upper()}"] if address else []
        texts.append("\n".join([f"Interface {name}", "", *lines, "", ""]))
    return "\n".join(texts)


def attempts(call: Call) -> Any:
    """Return the logins by protocol; the broker does not count them by source."""
    source = "/source" if call.options.get("by_source") else ""
    found = call.get(call.fill(f"/api/auth/attempts/{{node}}{source}", is_path=True))
    names = ["protocol", "auth_attempts", "auth_attempts_failed", "auth_attempts_succeeded"]
    if not found:
        return call.fill("Node {node} reported no authentication attempt stats")
    return Rows(names, [[item[name] for name in names] for item in found])


def set_object_type(call: Call) -> None:
    kind = call.options.setdefault("object_type", "queue")
    if kind not in ("queue", "exchange"):
        raise Misuse(f"Bad argument: object type {kind} is neither queue nor exchange", EX_DATAERR)


def matching_policies(call: Call) -> Any:
    """Return the policies of an object, that of the highest priority first."""
    kind, name = call.options["object_type"], call.arguments[0]
    found = call.ask("GET", call.fill(f"/api/{kind}s/{{vhost}}/{{0}}", is_path=True))
    if not found.is_ok:
        raise Failure(NO_OBJECT, EX_DATAERR)
    wanted = {"all", f"{kind}s"} | ({f"{found.value['type']}_queues"} if kind == "queue" else set())
    policies = [
        policy
        for policy in call.get(call.fill("/api/policies/{vhost}", is_path=True))
        if policy["apply-to"] in wanted and re.search(policy["pattern"], name)
    ]
    policies.sort(key=lambda policy: -policy["priority"])
    if call.formatter == "json":
        return Report("", {"result": "ok", "policies": policies})
    call.options.setdefault("formatter", "pretty_table")
    columns = ["vhost", "name", "pattern", "apply-to", "definition", "priority"]
    rows = [[POLICIES[column].read(policy, "") for column in columns] for policy in policies]
    return Rows(columns, rows, is_whole=True)


def check_priorities(call: Call) -> None:
    words = call.arguments
    if len(words) % 2:
        raise Misuse("not enough arguments.")
    call.options["pairs"] = ",".join("=".join(words[i : i + 2]) for i in range(0, len(words), 2))


def set_priorities(call: Call) -> NoReturn:
    names = ",".join(f'<<"{name}">>' for name in call.arguments[::2])
    raise failed(
        "cannot set channel interceptor priorities: the following are not registered as channel interceptors: "
        f"[{names}]"
    )


def diagnostic(
    name: str, about: str, says: str, run: Callable[[Call], Any], usage: str = "", **further: Any
) -> Command:
    return Command(name, usage, about, says=says, run=run, **{"group": CHECKS, "tools": (DIAGNOSTICS,), **further})


def erlang_only(name: str, about: str, says: str, usage: str = "", group: str = CHECKS) -> Command:
    return diagnostic(name, about, says, refusing(NO_ERLANG), usage, group=group)


def encoding(name: str, about: str, says: str, usage: str, **further: Any) -> Command:
    return diagnostic(
        name, about, says, refusing(NO_ENCRYPTION), usage, is_for_stopped=True, **{"tools": (CTL,), **further}
    )


def mirroring(name: str, about: str, says: str, function: str, usage: str = TIMEOUT, **further: Any) -> Command:
    return diagnostic(
        name, about, says, missing_function(function), usage, **{"tools": (DIAGNOSTICS, QUEUES), **further}
    )


ENCODED = "[<value>] [<passphrase>] [--cipher <cipher>] [--hash <hash>] [--iterations <iterations>]"
METADATA = "Checking if metadata store on node {node} has finished initializing ..."
METADATA_ABOUT = (
    "Health check that exits with a non-zero code if the metadata store on target node has not yet finished"
    " initializing"
)
CHECK_COMMANDS = (
    diagnostic(
        "check_if_any_deprecated_features_are_used",
        "Generate a report listing all deprecated features in use",
        "Checking if any deprecated features are used ...",
        check_deprecated,
        TIMEOUT,
        tools=BOTH,
    ),
    *(
        diagnostic(name, METADATA_ABOUT, METADATA, saying(INITIALIZED), TIMEOUT)
        for name in ("check_if_metadata_store_is_initialized", "check_if_metadata_store_is_initialized_with_data")
    ),
    diagnostic(
        "check_for_quorum_queues_without_an_elected_leader",
        "Checks that quorum queue have elected and available leader replicas",
        "Checking leader replicas of quorum queues matching '{0}' in vhost {vhost} ...",
        saying("Node {node} reported all quorum queue as having responsive leader replicas"),
        "[--vhost <vhost>] [--across-all-vhosts] <pattern>",
    ),
    diagnostic(
        "check_if_new_quorum_queue_replicas_have_finished_initial_sync",
        "Health check that exits with a non-zero code if there are queues that run promotable replicas on the current"
        " node.",
        "Checking if node {node} runs promotable replicas of any queues ...",
        saying(NO_REPLICAS),
        TIMEOUT,
        tools=(DIAGNOSTICS, QUEUES),
    ),
    mirroring(
        "check_if_cluster_has_classic_queue_mirroring_policy",
        "Health check that exits with a non-zero code if there are policies that enable classic queue mirroring",
        "Checking if cluster has any classic queue mirroring policy ...",
        "list_policies_with_classic_queue_mirroring",
    ),
    mirroring(
        "list_policies_with_classic_queue_mirroring",
        "List all policies that enable classic queue mirroring",
        "Listing policies with classic queue mirroring ...",
        "list_policies_with_classic_queue_mirroring",
    ),
    mirroring(
        "list_operator_policies_with_classic_queue_mirroring",
        "List all operator policies that enable classic queue mirroring",
        "Listing operator policies with classic queue mirroring ...",
        "list_operator_policies_with_classic_queue_mirroring",
    ),
    mirroring(
        "remove_classic_queue_mirroring_from_policies",
        "Removes keys that enable classic queue mirroring from all regular and operator policies",
        "Will remove keys that enable classic queue mirroring from all regular and operator policies",
        "remove_classic_queue_mirroring_from_policies",
        tools=(CTL,),
        group=OPERATIONS,
    ),
    diagnostic(
        "list_policies_that_match",
        "Lists all policies matching a queue/exchange (only the highest priority policy is active)",
        "Listing policies that match {object_type} '{0}' in vhost '{vhost}' ...",
        matching_policies,
        "[--object-type <type>] <name>",
        check=set_object_type,
        group="Policies",
    ),
)
ERLANG_COMMANDS = (
    erlang_only(
        "command_line_arguments",
        "Displays target node's command-line arguments and flags as reported by the runtime",
        "Command line arguments of node {node} ...",
        group=CONFIGURATION,
    ),
    erlang_only(
        "erlang_version",
        "Displays Erlang/OTP version on the target node",
        "Asking node {node} for its Erlang/OTP version...",
        "[--details] [--offline] " + TIMEOUT,
    ),
    erlang_only(
        "erlang_cookie_hash",
        "Displays a hash of the Erlang cookie (shared secret) used by the target node",
        "Asking node {node} its Erlang cookie hash...",
        TIMEOUT,
        CONFIGURATION,
    ),
    erlang_only(
        "erlang_cookie_sources",
        "Display Erlang cookie source (e.g. $HOME/.erlang.cookie file) information useful for troubleshooting",
        "Listing Erlang cookie sources used by CLI tools...",
        TIMEOUT,
        CONFIGURATION,
    ),
    erlang_only(
        "maybe_stuck",
        'Detects Erlang processes ("lightweight threads") potentially not making progress on the target node',
        "Asking node {node} to detect potentially stuck Erlang processes...",
        TIMEOUT,
    ),
    erlang_only("observer", "Starts a CLI observer interface on the target node", "", "[--interval <seconds>]"),
    erlang_only("remote_shell", "Starts an interactive Erlang shell on the target node", ""),
    erlang_only(
        "runtime_thread_stats",
        "Provides a breakdown of runtime thread activity stats on the target node",
        "",
        "[--sample-interval <interval>]",
    ),
)
ENCODING_COMMANDS = (
    encoding(
        "list_ciphers",
        "Lists cipher suites supported by encoding commands",
        "Listing supported ciphers ...",
        "",
        tools=BOTH,
    ),
    encoding(
        "list_hashes",
        "Lists hash functions supported by encoding commands",
        "Listing supported hash algorithms ...",
        "",
        tools=BOTH,
    ),
    encoding(
        "encode",
        "Encrypts a sensitive configuration value to be used in the advanced.config file",
        "Encrypting value to be used in advanced.config...",
        ENCODED,
        group=CONFIGURATION,
    ),
    encoding(
        "decode",
        "Decrypts an encrypted advanced.config value",
        "Decrypting an advanced.config (Erlang term) value...",
        ENCODED,
        group=CONFIGURATION,
    ),
    encoding(
        "encrypt_conf_value",
        "Encrypts a sensitive configuration value to be used in the advanced.config file",
        "Encrypting value to be used in rabbitmq.conf...",
        ENCODED,
        group=CONFIGURATION,
    ),
    encoding(
        "decrypt_conf_value",
        "Decrypts an encrypted configuration value",
        "Decrypting a rabbitmq.conf string value...",
        ENCODED,
        group=CONFIGURATION,
    ),
)
NETWORK_COMMANDS = (
    diagnostic(
        "certificates",
        "Displays certificates (public keys) for every listener on target node that is configured to use TLS",
        "Certificates of node {node} ...",
        certificates,
        group=CONFIGURATION,
    ),
    diagnostic(
        "cipher_suites",
        "Lists cipher suites enabled by default. To list all available cipher suites, add the --all argument.",
        "Listing available cipher suites in OpenSSL format",
        cipher_suites,
        "[--format <openssl | erlang | map>] [--all] " + TIMEOUT,
    ),
    diagnostic(
        "tls_versions",
        "Lists TLS versions supported (but not necessarily allowed) on the target node",
        "Listing all TLS versions supported by the runtime...",
        tls_versions,
        TIMEOUT,
    ),
    diagnostic(
        "discover_peers",
        "Performs peer discovery and lists discovered nodes, if any",
        "Discovering peers nodes ...",
        saying("[:{node}]"),
        TIMEOUT,
    ),
    diagnostic(
        "list_network_interfaces",
        "Lists network interfaces (NICs) on the target node",
        "Asking node {node} to report its network interfaces ...",
        interfaces,
        "[--offline] " + TIMEOUT,
    ),
    diagnostic(
        "resolver_info",
        "Displays effective hostname resolver (inetrc) configuration on target node",
        "Asking node {node} for its effective hostname resolver (inetrc) configuration...",
        lambda call: RESOLVER,
        "[--offline]",
        group=CONFIGURATION,
    ),
)
LOGIN_COMMANDS = (
    diagnostic(
        "list_node_auth_attempt_stats",
        "Lists authentication attempts on the target node",
        'Listing authentication\n attempts for node "{node}" ...',
        attempts,
        "[--by-source]",
        tools=BOTH,
    ),
    diagnostic(
        "enable_auth_attempt_source_tracking",
        "Enables the tracking of peer IP address and username of authentication attempts",
        "Enabling authentication attempt source tracking ...",
        refusing("this broker counts logins by protocol only"),
        group=CONFIGURATION,
    ),
    diagnostic(
        "disable_auth_attempt_source_tracking",
        "Disables the tracking of peer IP address and username of authentication attempts",
        "Disabling authentication attempt source tracking ...",
        nothing,
        group=CONFIGURATION,
    ),
    Command(
        "reset_node_auth_attempt_metrics",
        "",
        "Resets auth attempt metrics on the target node",
        CONFIGURATION,
        says="Reset auth attempt metrics on node {node} ...",
        asks=("DELETE", "/api/auth/attempts/{node}"),
        tools=(DIAGNOSTICS,),
    ),
)
COMMANDS = (
    *CHECK_COMMANDS,
    *ERLANG_COMMANDS,
    *ENCODING_COMMANDS,
    *NETWORK_COMMANDS,
    *LOGIN_COMMANDS,
    diagnostic(
        "log_tail",
        "Prints the last N lines of the log on the node",
        "Last {number} log lines on node {node} ...",
        # The log goes to the standard output: RabbitMQ then has no file to read either.
        refusing("enoent"),
        "[--number|-N <number>] " + TIMEOUT,
        check=lambda call: call.options.setdefault("number", 50),
    ),
    diagnostic(
        "log_tail_stream",
        "Streams logs from a running node for a period of time",
        "Streaming logs from node {node} {period} ...",
        refusing("enoent"),
        "[--duration|-d <seconds>] " + TIMEOUT,
        check=lambda call: call.options.setdefault(
            "period", f"for {call.options['duration']} seconds" if "duration" in call.options else "until terminated"
        ),
    ),
    diagnostic(
        "consume_event_stream",
        "Streams internal events from a running node. Output is jq-compatible.",
        "",
        refusing("this broker has no stream of events here: bind a queue to the exchange amq.rabbitmq.event"),
        "[--duration|-d <seconds>] [--pattern <pattern>] " + TIMEOUT,
    ),
    diagnostic(
        "message_size_stats",
        "Displays message size distribution statistics aggregated across all cluster nodes",
        "Gathering message size statistics across the cluster using node {node} ...",
        refusing("this broker does not count messages by size"),
        TIMEOUT,
    ),
    diagnostic(
        "list_channel_interceptors",
        "Lists registered channel interceptors with their name, intercepted AMQP operations, and priority",
        "Listing channel interceptors ...",
        lambda call: Rows([], [], is_whole=True),
        "[--no-table-headers] " + TIMEOUT,
        tools=BOTH,
    ),
    diagnostic(
        "set_channel_interceptor_priorities",
        "Sets the priorities of the given channel interceptors on the running node. The change applies immediately but"
        " is not persisted and does not survive a node restart",
        "Setting channel interceptor priorities to [{pairs}] ...",
        set_priorities,
        "<interceptor> <priority> [<interceptor> <priority> ...] " + TIMEOUT,
        check=check_priorities,
        counts=(2, 1000),
        tools=(CTL,),
        group=CONFIGURATION,
    ),
    *(
        Command(
            f"{verb}_free_disk_space_monitoring",
            TIMEOUT,
            f"{doing.capitalize()}s free disk space monitoring on a node",
            CHECKS,
            says=f"{says} free disk space monitoring on node {{node}}...",
            asks=(method, "/_broker/disk-monitoring"),
            tools=BOTH,
        )
        for verb, doing, says, method in (
            ("activate", "[Re-]activate", "[Re-]activating", "PUT"),
            ("deactivate", "deactivate", "Deactivating", "DELETE"),
        )
    ),
    diagnostic(
        "exec",
        "Evaluates a snippet of Elixir code on the CLI node",
        "",
        refusing("this tool has no Elixir"),
        "<expression> [--offline]",
        tools=(CTL,),
        group=OPERATIONS,
        is_for_stopped=True,
    ),
    diagnostic(
        "reset_stats_db",
        "Resets statistics database. This will remove all metrics data!",
        "Resetting statistics database {where}",
        nothing,
        "[--all]",
        check=lambda call: call.options.setdefault(
            "where", "in all nodes" if call.options.get("all") else f"on node {call.node}"
        ),
        tools=(CTL,),
        group="Management plugin",
    ),
)
