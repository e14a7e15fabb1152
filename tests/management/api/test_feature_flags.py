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


@pytest.mark.parametrize(
    ("compat", "count", "state", "phase"),
    [
        ("3.13", 6, "permitted", "permitted_by_default"),
        ("4.2", 8, "permitted", "permitted_by_default"),
        ("4.3", 8, "denied", "denied_by_default"),
    ],
)
def test_deprecated_features_are_those_of_the_version(compat: str, count: int, state: str, phase: str) -> None:
    found = {one["name"]: one for one in Desk(compat=compat).get("/api/deprecated-features")[1]}
    assert len(found) == count
    for name in ("global_qos", "queue_master_locator", "transient_nonexcl_queues"):
        assert (found[name]["state"], found[name]["deprecation_phase"]) == (state, phase)


def test_the_phase_of_a_feature_stays_where_an_administrator_permits_it() -> None:
    desk = Desk(compat="4.3", permitted_features="global_qos")
    found = {one["name"]: one for one in desk.get("/api/deprecated-features")[1]}
    assert (found["global_qos"]["state"], found["global_qos"]["deprecation_phase"]) == (
        "permitted",
        "denied_by_default",
    )


def test_flags_are_those_of_the_version() -> None:
    found = {
        compat: {flag["name"]: flag for flag in Desk(compat=compat).get("/api/feature-flags")[1]}
        for compat in ("3.13", "4.2", "4.3")
    }
    assert [len(flags) for flags in found.values()] == [21, 28, 33]
    assert [found[compat]["khepri_db"]["state"] for compat in ("4.2", "4.3")] == ["disabled", "enabled"]
    assert "callbacks" not in found["4.2"]["khepri_db"]
    assert found["4.3"]["khepri_db"]["callbacks"] == ["enable", "post_enable"]


def test_a_transient_queue_uses_a_deprecated_feature() -> None:
    desk = Desk()
    assert desk.get("/api/deprecated-features/used") == (200, [])
    desk.broker.vhosts["/"].declare_queue(QueueDeclaration("q", {}))
    assert [one["name"] for one in desk.get("/api/deprecated-features/used")[1]] == ["transient_nonexcl_queues"]


def test_khepri_is_shown_as_enabled_once_it_was_enabled() -> None:
    desk = Desk(compat="4.2")

    def state() -> str:
        flags = {flag["name"]: flag["state"] for flag in desk.get("/api/feature-flags")[1]}
        return str(flags["khepri_db"])

    assert state() == "disabled"
    assert desk.ask("PUT", "/api/feature-flags/khepri_db/enable", {})[0] == 204
    assert state() == "enabled"
