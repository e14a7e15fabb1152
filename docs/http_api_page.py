"""Writes docs/http-api.md from the list of resources and what their bodies have: `python -m docs.http_api_page`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from amqp_broker.management import metrics
from amqp_broker.management.openapi import BODIES, QUERIES
from amqp_broker.management.request import Resource
from amqp_broker.management.resources import RESOURCES

PAGE: Final = Path(__file__).with_name("http-api.md")

INTRODUCTION: Final = """\
# HTTP API

This page is generated: `python -m docs.http_api_page`. What stands below `/api/` is RabbitMQ's, with its field names,
status codes and errors; what stands below `/_broker/` is ours. A broker tells all of it as an OpenAPI document.

```console
$ amqp-broker serve
…
$ curl -s -u guest:guest -X PUT http://localhost:15672/api/queues/%2F/orders -d '{"durable": true}'
$ curl -s -u guest:guest 'http://localhost:15672/api/queues/%2F?columns=name,durable,messages'
[{"durable":true,"name":"orders","messages":0}]
$ curl -s -u guest:guest http://localhost:15672/api/queues/%2F/nothing
{"error":"Object Not Found","reason":"Not Found"}
$ curl -s http://localhost:15672/_broker/openapi.json
{"openapi":"3.1.0",…}
```

## What holds for all of them

- **Who asks** logs in with HTTP's basic authentication and has a tag: `management` sees what is his, `policymaker` sets
  policies and parameters besides, `monitoring` sees everything, `administrator` may do everything. *Anybody* needs no
  login.
  To change something takes permissions in the vhost, too, as over AMQP.
- **Names in a path** are percent-encoded: the vhost `/` is `%2F`; the default exchange is called `amq.default`.
- **Lists** take `page` (from 1), `page_size` (500 at most), `name`, `use_regex=true`, `sort` (`sort=messages`) and
  `sort_reverse=true`; with `page` the answer has `items` and the counts around them. `columns=name,messages` shortens
  each answer. `disable_stats=true` leaves out what is counted.
- **Numbers** are those of this moment. Rates are of the last seconds; `msg_rates_age`, `msg_rates_incr`, `lengths_age`,
  `lengths_incr` and their like ask for samples.
- **A body** is JSON. In the tables its required parts are **bold**.
- **Answers**: 200 with JSON; 201 for what was created; 204 for what was changed, deleted or already so. Errors are
  `{"error": …, "reason": …}`: 400 for what is wrong, 401 for who may not, 404 for what is not there, 405 for a method
  that a path does not have, 413 for too large a body.
- **Over TLS** (`--tls`, `management.ssl.*`) the same is served on 15671. The command line asks it at a socket of the
  broker's user, where nobody needs a login.
"""

METRICS: Final = """
## Metrics

On the port of the metrics, 15692; see [metrics.md](metrics.md).

{table}"""

EVENTS: Final = """
## Events

`GET /_broker/events?streams=overview,topology,messages&vhost=%2F` (tag management; `messages` only for administrators)
is a stream of server-sent events, what the web page shows by itself: numbers each second, what was declared, changed or
deleted, and the messages of a vhost as they pass.
"""

# What each path is, under headlines in the order of the page. A path that is missing fails tests/docs.
SECTIONS: Final[dict[str, dict[str, str]]] = {
    "The broker": {
        "/api/overview": "totals, rates, listeners, versions",
        "/api/whoami": "who asks, and his tags",
        "/api/version": "the version as a text",
        "/api/extensions": "extensions of the page",
        "/api/cluster-name": "the name of the cluster",
        "/api/nodes": "the one node there is, in a list",
        "/api/nodes/{node}": "memory, disk, descriptors, uptime",
        "/api/nodes/{node}/memory": "what the memory is used for",
        "/api/config/effective": "the settings in force, but for secrets",
        "/api/feature-flags": "feature flags",
        "/api/feature-flags/{name}/enable": "all are enabled already",
        "/api/deprecated-features": "deprecated features, and which are permitted",
        "/api/deprecated-features/used": "those in use",
        "/api/rebalance/queues": "nothing to do on one node",
        "/api/reset": "resets statistics in RabbitMQ; nothing to do here",
        "/api/reset/{node}": "the same for one node",
    },
    "Connections, channels, consumers": {
        "/api/connections": "open connections",
        "/api/connections/{name}": "one of them; DELETE closes it, with the header `X-Reason` as its reason",
        "/api/connections/{name}/channels": "its channels",
        "/api/connections/username/{user}": "those of a user; DELETE closes them all",
        "/api/vhosts/{vhost}/connections": "those of a vhost",
        "/api/channels": "open channels",
        "/api/channels/{name}": "one of them",
        "/api/vhosts/{vhost}/channels": "those of a vhost",
        "/api/consumers": "consumers",
        "/api/consumers/{vhost}": "those of a vhost",
    },
    "Exchanges, queues, bindings": {
        "/api/exchanges": "exchanges",
        "/api/exchanges/{vhost}": "those of a vhost",
        "/api/exchanges/{vhost}/{name}": "one; PUT declares it; `?if-unused=true` for DELETE",
        "/api/exchanges/{vhost}/{name}/bindings/source": "bindings from it",
        "/api/exchanges/{vhost}/{name}/bindings/destination": "bindings to it",
        "/api/queues": "queues and streams",
        "/api/queues/{vhost}": "those of a vhost",
        "/api/queues/{vhost}/{name}": "one; PUT declares it; `?if-empty=true`, `?if-unused=true` for DELETE",
        "/api/queues/{vhost}/{name}/bindings": "bindings to it",
        "/api/queues/{vhost}/{queue}/actions": "mirrors, of which there are none",
        "/api/bindings": "bindings",
        "/api/bindings/{vhost}": "those of a vhost",
        "/api/bindings/{vhost}/e/{source}/{kind}/{destination}": "between two; kind is `q` or `e`; POST makes one",
        "/api/bindings/{vhost}/e/{source}/{kind}/{destination}/{properties}": "one, by its `properties_key`",
    },
    "Messages": {
        "/api/exchanges/{vhost}/{name}/publish": "publish; the answer says whether it was `routed`",
        "/api/queues/{vhost}/{queue}/get": "get messages: requeued or taken, as `ackmode` says",
        "/api/queues/{vhost}/{queue}/contents": "purge the queue",
        "/_broker/queues/{vhost}/{queue}/peek": "look at messages without touching them",
        "/_broker/queues/{vhost}/{queue}/move": "move messages to a queue or exchange",
    },
    "Users and permissions": {
        "/api/users": "users",
        "/api/users/without-permissions": "those who may enter no vhost",
        "/api/users/bulk-delete": "delete several",
        "/api/users/{user}": "one; PUT with `password_hash` empty lets nobody log in by password",
        "/api/users/{user}/permissions": "what he may do",
        "/api/users/{user}/topic-permissions": "and with which routing keys",
        "/api/permissions": "permissions",
        "/api/vhosts/{vhost}/permissions": "those in a vhost",
        "/api/permissions/{vhost}/{user}": "those of a user there; three regular expressions",
        "/api/topic-permissions": "topic permissions",
        "/api/vhosts/{vhost}/topic-permissions": "those in a vhost",
        "/api/topic-permissions/{vhost}/{user}": "those of a user there",
        "/api/topic-permissions/{vhost}/{user}/{exchange}": "one of them",
        "/api/user-limits": "limits of users",
        "/api/user-limits/{user}": "those of one",
        "/api/user-limits/{user}/{name}": "`max-connections` or `max-channels`",
        "/api/auth": "how one logs in",
        "/api/login": "the form of RabbitMQ's page",
        "/api/auth/hash_password": "the hash of a password",
        "/api/auth/hash_password/{password}": "the same, with the password in the path",
        "/api/auth/attempts/{node}": "how many logged in, and how many failed",
        "/api/auth/attempts/{node}/source": "by address: not counted, as in RabbitMQ unless configured",
        "/_broker/authenticate": "204 if that is the user's password, else 401",
    },
    "Vhosts, policies, parameters": {
        "/api/vhosts": "vhosts",
        "/api/vhosts/{vhost}": "one; who makes it may do everything there",
        "/api/vhosts/{vhost}/start/{node}": "vhosts do not fail here",
        "/api/vhosts/{vhost}/deletion/protection": "POST protects it from deletion, DELETE ends that",
        "/_broker/trace/{vhost}": 'PUT switches the firehose on (`{"extended": true}`: and tells more), DELETE off',
        "/api/vhost-limits": "limits of vhosts",
        "/api/vhost-limits/{vhost}": "those of one",
        "/api/vhost-limits/{vhost}/{name}": "`max-connections` or `max-queues`",
        "/api/policies": "policies",
        "/api/policies/{vhost}": "those of a vhost",
        "/api/policies/{vhost}/{name}": "one",
        "/api/operator-policies": "operator policies",
        "/api/operator-policies/{vhost}": "those of a vhost",
        "/api/operator-policies/{vhost}/{name}": "one",
        "/api/parameters": "runtime parameters",
        "/api/parameters/{component}": "those of a component",
        "/api/parameters/{component}/{vhost}": "and of a vhost",
        "/api/parameters/{component}/{vhost}/{name}": "one; `shovel` starts a [shovel](shovels.md)",
        "/api/global-parameters": "global parameters",
        "/api/global-parameters/{name}": "one",
        "/api/shovels": "how the shovels are doing",
        "/api/shovels/{vhost}": "those of a vhost",
        "/api/shovels/vhost/{vhost}/{name}": "one; DELETE ends it",
        "/api/shovels/vhost/{vhost}/{name}/restart": "start it again",
        "/api/federation-links": "there are none",
        "/api/federation-links/{vhost}": "there are none",
        "/api/definitions": "all [definitions](definitions.md), to read or to import",
        "/api/definitions/{vhost}": "those of a vhost",
        "/api/all-configuration": "the same as /api/definitions",
    },
    "Health": {
        "/_broker/health": "200 while clients are let in and may publish, else 503",
        "/_broker/readyz": "the same",
        "/_broker/livez": "200 while it answers",
        "/api/health/checks/alarms": "no alarm is on",
        "/api/health/checks/local-alarms": "the same on one node",
        "/api/health/checks/virtual-hosts": "all vhosts run",
        "/api/health/checks/node-is-mirror-sync-critical": "always healthy on one node",
        "/api/health/checks/node-is-quorum-critical": "always healthy on one node",
        "/api/health/checks/port-listener/{port}": "something listens there",
        "/api/health/checks/protocol-listener/{protocol}": "something listens for it: `amqp`, `amqps`, `http` …",
        "/api/health/checks/certificate-expiration/{within}/{unit}": "no certificate ends within so many `weeks`",
        "/api/health/checks/is-in-service": "always healthy",
        "/api/health/checks/below-node-connection-limit": "more connections are let in",
        "/api/health/checks/ready-to-serve-clients": "clients are let in",
        "/api/health/checks/metadata-store/initialized": "always healthy",
        "/api/health/checks/metadata-store/initialized/with-data": "there is a user and a vhost",
        "/api/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}": "always healthy",
        "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}": "always healthy",
        "/api/aliveness-test/{vhost}": "a message was published and got",
        "/api/healthchecks/node": "RabbitMQ's former check",
        "/api/healthchecks/node/{node}": "the same",
    },
    "What the command line uses": {
        "/_broker/node": "what is asked most often",
        "/_broker/status": "all that `status` and the health checks tell",
        "/_broker/memory-limit": "as `set_vm_memory_high_watermark`",
        "/_broker/disk-free-limit": "as `set_disk_free_limit`",
        "/_broker/log-level": "as `set_log_level`",
        "/_broker/stop": "end the broker",
        "/_broker/stop-app": "close connections and listeners",
        "/_broker/start-app": "listen again",
        "/_broker/suspend-listeners": "let nobody new in",
        "/_broker/resume-listeners": "let clients in again",
        "/_broker/reset-node": "as `reset`: of a stopped app, everything is deleted",
        "/_broker/clock": "what time it is for the broker, and whether it stands still ([clock](clock.md))",
        "/_broker/clock/advance": "move time on, and let happen what is due in between",
        "/_broker/clock/freeze": "have time stand still",
        "/_broker/clock/resume": "have time go on",
        "/_broker/messages": "what happened to messages; `count` and `timeout_s` wait ([messages](messages.md))",
        "/_broker/messages/{number}": "the life of one message",
        "/_broker/idle": "wait until nothing is ready or unacked",
        "/_broker/recording/{vhost}": "what is published from now on, as it comes ([record and replay](replay.md))",
        "/_broker/record": "the records of what happens to messages",
        "/_broker/record/{vhost}": "switch the record of a vhost on or off",
        "/_broker/faults": "rules for what the broker does wrong: list, add, remove all ([faults](faults.md))",
        "/_broker/faults/{id}": "one rule and its hits",
        "/_broker/advice": "habits that bite in production; DELETE forgets them ([advice](advice.md))",
        "/_broker/demo": "the figures of the [demo](demo.md) that runs at this broker; 404 if none does",
        "/_broker/snapshot/{vhost}": "a vhost with its messages, and back (`?clear=true` where there is something)",
        "/_broker/reset": "delete everything, or with `?vhost=` all in that vhost",
        "/_broker/openapi.json": "this API as OpenAPI 3.1",
    },
}

METRIC_PATHS: Final = {
    "/metrics": "each number summed up over its objects",
    "/metrics/per-object": "each number for each object",
    "/metrics/detailed": "`?family=…&vhost=…`: chosen families, for each object",
}


def page() -> str:
    """The page as it must be."""
    resources = {resource.path: resource for resource in RESOURCES}
    text = INTRODUCTION
    for headline, paths in SECTIONS.items():
        table = "".join(_lines((resources[path], said) for path, said in paths.items()))
        text += f"\n## {headline}\n\n{_HEAD}{table}"
    families = {resource.path: resource for resource in metrics.resources(is_per_object=False)}
    table = "".join(_lines((families[path], said) for path, said in METRIC_PATHS.items()))
    return text + EVENTS + METRICS.format(table=_HEAD + table)


_HEAD: Final = "| path | methods | tag | what | sent |\n|---|---|---|---|---|\n"


def _lines(rows: Iterator[tuple[Resource, str]]) -> Iterator[str]:
    for resource, said in rows:
        sent = [_parts(BODIES[key]) for key in _keys(resource) if key in BODIES]
        query = ", ".join(f"`?{name}`" for key in _keys(resource) for name in QUERIES.get(key, {}) if "page" not in key)
        is_list = any("page_size" in QUERIES.get(key, {}) for key in _keys(resource))
        told = "; ".join(dict.fromkeys(sent)) or ("" if is_list else query)
        yield f"| `{resource.path}` | {' '.join(resource.handlers)} | {resource.needs} | {said} | {told} |\n"


def _keys(resource: Resource) -> list[tuple[str, str]]:
    return [(method, resource.path) for method in resource.handlers]


def _parts(schema: dict[str, Any]) -> str:
    """The properties of a body, and which it must have."""
    if "oneOf" in schema:
        return " or ".join(map(_parts, schema["oneOf"]))
    required = schema["required"]
    return ", ".join(f"**`{name}`**" if name in required else f"`{name}`" for name in schema["properties"])


if __name__ == "__main__":
    PAGE.write_text(page())
