from __future__ import annotations

import pytest

from amqp_broker.broker.admin.access import User
from amqp_broker.management.api.health import endpoints
from tests.broker_parts import new_connection
from tests.management.asking import Desk

CHECKS = "/api/health/checks"


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_healthy_broker_passes_every_check(desk: Desk) -> None:
    parts = {"port": "5672", "protocol": "AMQP091", "within": "1", "unit": "weeks", "vhost": "%2F", "pattern": ".*"}
    for endpoint in endpoints:
        if endpoint.path.endswith("node-is-mirror-sync-critical"):
            continue
        status, value = desk.get(endpoint.path.format(**parts, node=desk.broker.node))
        assert (status, value["status"]) == (200, "ok"), endpoint.path


def test_mirrors_ended_with_rabbitmq_4(desk: Desk) -> None:
    assert desk.get(f"{CHECKS}/node-is-mirror-sync-critical") == (404, "Not Found")
    assert Desk(compat="3.13").get(f"{CHECKS}/node-is-mirror-sync-critical")[0] == 200


def test_an_alarm_fails_the_checks_of_alarms(desk: Desk) -> None:
    desk.broker.set_alarm("memory", True)
    status, value = desk.get(f"{CHECKS}/alarms")
    assert status == 503
    assert value == {
        "status": "failed",
        "reason": "There are alarms in effect in the cluster",
        "alarms": [{"node": desk.broker.node, "resource": "memory"}],
    }
    assert desk.get(f"{CHECKS}/local-alarms")[1]["reason"] == "There are alarms in effect on the node"
    assert desk.get("/_broker/readyz")[0] == 503
    assert desk.get("/_broker/livez")[0] == 200
    desk.broker.set_alarm("disk", True)
    assert [alarm["resource"] for alarm in desk.get(f"{CHECKS}/alarms")[1]["alarms"]] == ["disk space", "memory"]


def test_listener_checks_require_a_listener(desk: Desk) -> None:
    assert desk.get(f"{CHECKS}/port-listener/1") == (
        503,
        {"status": "failed", "reason": "No active listener", "missing": 1, "ports": [5672]},
    )
    assert desk.get(f"{CHECKS}/protocol-listener/mqtt")[1]["protocols"] == ["amqp"]
    assert desk.get(f"{CHECKS}/port-listener/x") == (400, "Invalid port")
    assert desk.get(f"{CHECKS}/port-listener/" + "9" * 5000)[0] == 400


def test_periods_are_numbers_of_known_units(desk: Desk) -> None:
    assert desk.get(f"{CHECKS}/certificate-expiration/x/weeks") == (400, "Invalid expiration value.")
    assert desk.get(f"{CHECKS}/certificate-expiration/1/decades") == (
        400,
        "Time unit not recognised. Supported units: days, weeks, months, years.",
    )


def test_a_full_node_is_not_ready() -> None:
    desk = Desk(connection_max=1)
    assert desk.get(f"{CHECKS}/below-node-connection-limit")[1] == {"status": "ok", "limit": 1, "connections": 0}
    desk.broker.connections.add(new_connection())
    assert desk.get(f"{CHECKS}/below-node-connection-limit")[0] == 503
    assert desk.get(f"{CHECKS}/ready-to-serve-clients")[0] == 503
    assert desk.get("/_broker/health")[0] == 503


def test_until_4_0_a_message_gets_through_a_queue_that_stays() -> None:
    desk = Desk(compat="4.0")
    assert desk.get("/api/aliveness-test/%2F") == desk.get("/api/aliveness-test/%2F") == (200, {"status": "ok"})
    queue = desk.lab.vhost.queues["aliveness-test"]
    assert (queue.is_durable, queue.ready_count, queue.statistics.deliveries.get_no_ack) == (False, 0, 2)
    assert desk.get("/api/deprecated-features/used")[1][0]["name"] == "transient_nonexcl_queues"
    desk.lab.connect().consume("aliveness-test")
    assert desk.get("/api/aliveness-test/%2F")[0] == 503
    desk.be("management", write="^$")
    assert desk.get("/api/aliveness-test/%2F")[0] == 401


def test_since_4_1_the_check_of_a_vhost_declares_nothing(desk: Desk) -> None:
    assert desk.get("/api/aliveness-test/%2F")[0] == 200
    assert not desk.lab.vhost.queues


def test_checks_of_missing_objects_fail(desk: Desk) -> None:
    assert desk.get("/api/aliveness-test/none") == (404, "Not Found")
    assert desk.get("/api/healthchecks/node/none") == (404, "Not Found")
    assert desk.get(f"{CHECKS}/quorum-queues-without-elected-leaders/vhost/none/pattern/x") == (404, "Not Found")


def test_readiness_is_public(desk: Desk) -> None:
    desk.user = User("nobody")
    for path in ("is-in-service", "ready-to-serve-clients", "below-node-connection-limit"):
        assert desk.get(f"{CHECKS}/{path}")[0] == 200
    assert desk.get(f"{CHECKS}/alarms")[0] == 401
