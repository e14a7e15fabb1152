"""Health checks: 200, or 503 with the reason.

Source: RabbitMQ, "Monitoring", health checks; rabbit_mgmt_wm_health_check_*.erl of 4.2.
"""

from __future__ import annotations

from typing import Any, Final

from amqp_broker.amqp.errors import AMQPError
from amqp_broker.amqp.message import Properties
from amqp_broker.broker.operations import authorized
from amqp_broker.broker.operations.checked_publish import publish
from amqp_broker.broker.queues.queue import QueueDeclaration
from amqp_broker.management.api.messages import HTTPPeer, channel_refusal, check_limits, entered_vhost, pull
from amqp_broker.management.http.answers import Answer, bad_request, not_found
from amqp_broker.management.http.auth import MANAGEMENT, PUBLIC
from amqp_broker.management.http.endpoint import Endpoints
from amqp_broker.management.http.request import Request

endpoints = Endpoints()

OK: Final = {"status": "ok"}
ALIVENESS_QUEUE: Final = "aliveness-test"
ALONE: Final = {"status": "ok", "reason": "single node cluster"}
UNITS: Final = ("days", "weeks", "months", "years")
# Other names of protocols.
PROTOCOLS: Final = {
    **dict.fromkeys(("amqp091", "amqp0.9.1", "amqp0-9-1", "amqp0_9_1"), "amqp"),
    **dict.fromkeys(("amqp10", "amqp1.0", "amqp1-0", "amqp1_0"), "amqp"),
    "amqps": "amqp/ssl",
    **dict.fromkeys(("http1", "http1.1", "http_api", "management", "management_ui", "ui"), "http"),
    **dict.fromkeys(("cli", "distribution"), "clustering"),
}


# The path of each check.
_CHECK: Final = "GET /api/health/checks/"
_LEADERS: Final = f"{_CHECK}quorum-queues-without-elected-leaders/"


def failed(reason: str, **more: object) -> Answer:
    """Return the answer of a failed check."""
    return Answer(503, {"status": "failed", "reason": reason, **more})


@endpoints.on(
    f"{_CHECK}virtual-hosts",
    f"{_CHECK}metadata-store/initialized",
    f"{_LEADERS}all-vhosts/",
    f"{_LEADERS}all-vhosts/pattern/{{pattern}}",
    f"{_CHECK}reached-target-cluster-size",
    tag=MANAGEMENT,
)
@endpoints.on(f"{_CHECK}is-in-service", "GET /_broker/livez", tag=PUBLIC)
def fine(request: Request) -> Any:
    """Succeed while the broker answers."""
    return OK


@endpoints.on(f"{_CHECK}node-is-quorum-critical", tag=MANAGEMENT)
def alone(request: Request) -> Any:
    """Succeed: there are no other nodes."""
    return ALONE


@endpoints.on(f"{_CHECK}node-is-mirror-sync-critical", tag=MANAGEMENT)
def no_mirrors(request: Request) -> Any:
    """Succeed with RabbitMQ 3: there are no other nodes. RabbitMQ 4 has no mirrors (404)."""
    if request.broker.profile.release >= (4, 0):
        raise not_found()
    return ALONE


@endpoints.on(f"{_CHECK}alarms", tag=MANAGEMENT)
def alarms(request: Request) -> Any:
    """Check that no alarm is in effect."""
    return _check_alarms(request, "in the cluster")


@endpoints.on(f"{_CHECK}local-alarms", tag=MANAGEMENT)
def local_alarms(request: Request) -> Any:
    """Check that no alarm is in effect on the node."""
    return _check_alarms(request, "on the node")


# RabbitMQ's words for what is short.
_RESOURCES: Final = {"memory": "memory", "disk": "disk space"}


def _check_alarms(request: Request, where: str) -> Any:
    broker = request.broker
    if not broker.alarms:
        return OK
    alarms = [{"node": broker.node, "resource": _RESOURCES[resource]} for resource in sorted(broker.alarms)]
    return failed(f"There are alarms in effect {where}", alarms=alarms)


@endpoints.on(f"{_CHECK}port-listener/{{port}}", tag=MANAGEMENT)
def port_listener(request: Request) -> Any:
    """Check that there is a listener on a port."""
    try:
        port = int(request.path["port"])
    except ValueError:
        raise bad_request("Invalid port") from None
    ports = [listener.port for listener in request.node.listeners()]
    if port in ports:
        return {"status": "ok", "port": port}
    return failed("No active listener", missing=port, ports=ports)


@endpoints.on(f"{_CHECK}protocol-listener/{{protocol}}", tag=MANAGEMENT)
def protocol_listener(request: Request) -> Any:
    """Check that there is a listener for a protocol: `amqp`, `amqps`, `http` and others."""
    asked = request.path["protocol"].lower()
    protocol = PROTOCOLS.get(asked, asked)
    protocols = [listener.protocol for listener in request.node.listeners()]
    takes_lists = request.broker.profile.release >= (4, 3)
    if protocol in protocols:
        return {"status": "ok", **({"protocols": protocols} if takes_lists else {"protocol": protocol})}
    return failed("No active listener", missing=[protocol] if takes_lists else protocol, protocols=protocols)


@endpoints.on(f"{_CHECK}certificate-expiration/{{within}}/{{unit}}", tag=MANAGEMENT)
def certificate_expiration(request: Request) -> Any:
    """Answer that no certificate expires within a number of days, weeks, months or years; none is read."""
    if request.path["unit"] not in UNITS:
        raise bad_request(f"Time unit not recognised. Supported units: {', '.join(UNITS)}.")
    try:
        int(request.path["within"])
    except ValueError:
        raise bad_request("Invalid expiration value.") from None
    return OK


def _limit(request: Request) -> tuple[int, int | None]:
    return len(request.broker.connections), request.broker.settings.connection_max


@endpoints.on(f"{_CHECK}below-node-connection-limit", tag=PUBLIC)
def below_connection_limit(request: Request) -> Any:
    """Check that the node accepts more connections."""
    count, limit = _limit(request)
    counts = {"limit": "infinity" if limit is None else limit, "connections": count}
    if limit is not None and count >= limit:
        return failed("node connection limit is reached", **counts)
    return {"status": "ok", **counts}


@endpoints.on(f"{_CHECK}ready-to-serve-clients", tag=PUBLIC)
def ready_to_serve(request: Request) -> Any:
    """Check that the node accepts clients."""
    count, limit = _limit(request)
    if limit is not None and count >= limit:
        return failed("node connection limit is reached", connections=count)
    return OK


@endpoints.on(f"{_CHECK}metadata-store/initialized/with-data", tag=MANAGEMENT)
def metadata_store(request: Request) -> Any:
    """Check that there is a vhost."""
    if not request.broker.vhosts:
        return failed("Metadata store has not yet been initialized: it reports to have no virtual hosts")
    return OK


@endpoints.on(f"{_LEADERS}vhost/{{vhost}}/", f"{_LEADERS}vhost/{{vhost}}/pattern/{{pattern}}", tag=MANAGEMENT)
def leaders_in_vhost(request: Request) -> Any:
    """Check that a vhost exists: the one node leads all quorum queues."""
    if request.path["vhost"] not in request.broker.vhosts:
        raise not_found()
    return OK


@endpoints.on("GET /api/aliveness-test/{vhost}", tag=MANAGEMENT)
def aliveness(request: Request) -> Any:
    """Check that a vhost exists. Until RabbitMQ 4.0 a message must also get through the queue `aliveness-test`."""
    vhost = entered_vhost(request)
    check_limits(request, vhost)
    if request.broker.profile.release > (4, 0):
        return OK
    try:
        # RabbitMQ keeps the queue for the next check.
        queue = authorized.declare_queue(request.user, vhost, QueueDeclaration(ALIVENESS_QUEUE, {}), None)
        peer = HTTPPeer(request, vhost)
        if request.user.asks:
            # A check that has to wait for an answer starts again, and must have published nothing.
            request.user.require("read", vhost.name, "queue", ALIVENESS_QUEUE)
        publish(vhost, peer, "", ALIVENESS_QUEUE, Properties(), b"test_message")
        request.user.require("read", vhost.name, "queue", ALIVENESS_QUEUE)
        pulled = pull(vhost, peer, queue, None, is_first=True)
    except AMQPError as error:
        raise channel_refusal(error) from None
    return failed("aliveness-test queue is empty") if pulled is None else OK


@endpoints.on("GET /api/healthchecks/node", "GET /api/healthchecks/node/{node}", tag=MANAGEMENT)
def this_node(request: Request) -> Any:
    """Check that the node answers (RabbitMQ's former check)."""
    request.require_node()
    return OK


@endpoints.on("GET /_broker/health", "GET /_broker/readyz", tag=PUBLIC)
def readiness(request: Request) -> Any:
    """Check that clients may connect and publish."""
    broker = request.broker
    if broker.alarms:
        return failed(f"publishers are blocked: {', '.join(sorted(broker.alarms))}")
    return ready_to_serve(request)
