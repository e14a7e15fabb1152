"""Health checks: 200 where all is well, 503 and the reason where it is not.

Source: RabbitMQ, "Monitoring", health checks; rabbit_mgmt_wm_health_check_*.erl of 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from amqp_broker.management.access import ANYBODY, MANAGEMENT
from amqp_broker.management.request import Answer, Request, Resource, bad_request, not_found

OK: Final = {"status": "ok"}
ALONE: Final = {"status": "ok", "reason": "single node cluster"}
UNITS: Final = ("days", "weeks", "months", "years")
# What else a protocol may be called.
PROTOCOLS: Final = {
    **dict.fromkeys(("amqp091", "amqp0.9.1", "amqp0-9-1", "amqp0_9_1"), "amqp"),
    **dict.fromkeys(("amqp10", "amqp1.0", "amqp1-0", "amqp1_0"), "amqp"),
    "amqps": "amqp/ssl",
    **dict.fromkeys(("http1", "http1.1", "http_api", "management", "management_ui", "ui"), "http"),
    **dict.fromkeys(("cli", "distribution"), "clustering"),
}


def failed(reason: str, **more: object) -> Answer:
    return Answer(503, {"status": "failed", "reason": reason, **more})


def fine(request: Request) -> Any:
    """What cannot fail here, or would have failed before anybody could ask."""
    return OK


def alone(request: Request) -> Any:
    """What is about the other nodes of a cluster."""
    return ALONE


def _alarms(where: str) -> Callable[[Request], Any]:
    def check(request: Request) -> Any:
        broker = request.broker
        if not broker.alarms:
            return OK
        alarms = [{"node": broker.node, "resource": resource} for resource in sorted(broker.alarms)]
        return failed(f"There are alarms in effect {where}", alarms=alarms)

    return check


def port_listener(request: Request) -> Any:
    try:
        port = int(request.path["port"])
    except ValueError:
        raise bad_request("Invalid port") from None
    ports = [listener.port for listener in request.node.listeners()]
    if port in ports:
        return {"status": "ok", "port": port}
    return failed("No active listener", missing=port, ports=ports)


def protocol_listener(request: Request) -> Any:
    asked = request.path["protocol"].lower()
    protocol = PROTOCOLS.get(asked, asked)
    protocols = [listener.protocol for listener in request.node.listeners()]
    if protocol in protocols:
        return {"status": "ok", "protocol": protocol}
    return failed("No active listener", missing=protocol, protocols=protocols)


def certificate_expiration(request: Request) -> Any:
    if request.path["unit"] not in UNITS:
        raise bad_request(f"Time unit not recognised. Supported units: {', '.join(UNITS)}.")
    try:
        int(request.path["within"])
    except ValueError:
        raise bad_request("Invalid expiration value.") from None
    return OK


def _limit(request: Request) -> tuple[int, int | None]:
    return len(request.broker.connections), request.broker.config.connection_max


def below_connection_limit(request: Request) -> Any:
    count, limit = _limit(request)
    told = {"limit": "infinity" if limit is None else limit, "connections": count}
    if limit is not None and count >= limit:
        return failed("node connection limit is reached", **told)
    return {"status": "ok", **told}


def ready_to_serve(request: Request) -> Any:
    count, limit = _limit(request)
    if limit is not None and count >= limit:
        return failed("node connection limit is reached", connections=count)
    return OK


def metadata_store(request: Request) -> Any:
    if not request.broker.vhosts:
        return failed("Metadata store has not yet been initialized: it reports to have no virtual hosts")
    return OK


def leaders_in_vhost(request: Request) -> Any:
    """Each quorum queue is led by the one node there is."""
    if request.path["vhost"] not in request.broker.vhosts:
        raise not_found()
    return OK


def aliveness(request: Request) -> Any:
    request.vhost  # noqa: B018 # it must be there
    return OK


def this_node(request: Request) -> Any:
    if request.path.get("node", request.broker.node) != request.broker.node:
        raise not_found()
    return OK


def readiness(request: Request) -> Any:
    """Whether clients are let in and may publish."""
    broker = request.broker
    if broker.alarms:
        return failed(f"publishers are blocked: {', '.join(sorted(broker.alarms))}")
    return ready_to_serve(request)


_CHECKS = "/api/health/checks/"
_LEADERLESS = "quorum-queues-without-elected-leaders/"

RESOURCES = (
    Resource(_CHECKS + "alarms", MANAGEMENT, {"GET": _alarms("in the cluster")}),
    Resource(_CHECKS + "local-alarms", MANAGEMENT, {"GET": _alarms("on the node")}),
    Resource(_CHECKS + "virtual-hosts", MANAGEMENT, {"GET": fine}),
    Resource(_CHECKS + "node-is-mirror-sync-critical", MANAGEMENT, {"GET": alone}),
    Resource(_CHECKS + "node-is-quorum-critical", MANAGEMENT, {"GET": alone}),
    Resource(_CHECKS + "port-listener/{port}", MANAGEMENT, {"GET": port_listener}),
    Resource(_CHECKS + "protocol-listener/{protocol}", MANAGEMENT, {"GET": protocol_listener}),
    Resource(_CHECKS + "certificate-expiration/{within}/{unit}", MANAGEMENT, {"GET": certificate_expiration}),
    Resource(_CHECKS + "is-in-service", ANYBODY, {"GET": fine}),
    Resource(_CHECKS + "below-node-connection-limit", ANYBODY, {"GET": below_connection_limit}),
    Resource(_CHECKS + "ready-to-serve-clients", ANYBODY, {"GET": ready_to_serve}),
    Resource(_CHECKS + "metadata-store/initialized", MANAGEMENT, {"GET": fine}),
    Resource(_CHECKS + "metadata-store/initialized/with-data", MANAGEMENT, {"GET": metadata_store}),
    Resource(_CHECKS + _LEADERLESS + "vhost/{vhost}/pattern/{pattern}", MANAGEMENT, {"GET": leaders_in_vhost}),
    Resource(_CHECKS + _LEADERLESS + "all-vhosts/pattern/{pattern}", MANAGEMENT, {"GET": fine}),
    Resource("/api/aliveness-test/{vhost}", MANAGEMENT, {"GET": aliveness}),
    Resource("/api/healthchecks/node", MANAGEMENT, {"GET": this_node}),
    Resource("/api/healthchecks/node/{node}", MANAGEMENT, {"GET": this_node}),
    Resource("/_broker/health", ANYBODY, {"GET": readiness}),
    Resource("/_broker/readyz", ANYBODY, {"GET": readiness}),
    Resource("/_broker/livez", ANYBODY, {"GET": fine}),
)
