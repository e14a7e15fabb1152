from __future__ import annotations

import pytest

from amqp_broker.broker.queues.queue import QueueDeclaration
from tests.management.asking import Desk


def test_the_flags_that_clients_look_for_are_enabled() -> None:
    flags = {flag["name"]: flag for flag in Desk().get("/api/feature-flags")[1]}
    assert flags["quorum_queue"]["state"] == flags["stream_queue"]["state"] == "enabled"
    assert set(flags["quorum_queue"]) == {"name", "desc", "doc_url", "state", "stability", "provided_by"}


def test_enabling_an_existing_flag_does_nothing() -> None:
    desk = Desk()
    assert desk.ask("PUT", "/api/feature-flags/quorum_queue/enable", {})[0] == 204
    assert desk.ask("PUT", "/api/feature-flags/none/enable", {}) == (400, "unsupported")


@pytest.mark.parametrize(("compat", "state"), [("4.2", "permitted"), ("4.3", "denied")])
def test_deprecated_features_are_those_of_the_version(compat: str, state: str) -> None:
    found = Desk(compat=compat).get("/api/deprecated-features")[1]
    assert {feature["name"]: feature["state"] for feature in found} == {
        "global_qos": state,
        "queue_master_locator": state,
        "transient_nonexcl_queues": state,
    }


def test_a_transient_queue_uses_a_deprecated_feature() -> None:
    desk = Desk()
    assert desk.get("/api/deprecated-features/used") == (200, [])
    desk.broker.vhosts["/"].declare_queue(QueueDeclaration("q", {}))
    assert [one["name"] for one in desk.get("/api/deprecated-features/used")[1]] == ["transient_nonexcl_queues"]
