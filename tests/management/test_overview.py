from __future__ import annotations

from tests.management.asking import Desk


def test_whoami_tells_name_and_tags() -> None:
    assert Desk().get("/api/whoami") == (200, {"name": "guest", "tags": ["administrator"], "is_internal_user": True})


def test_the_overview_tells_which_rabbitmq_is_imitated() -> None:
    status, overview = Desk(compat="3.13").get("/api/overview")
    assert status == 200
    assert overview["rabbitmq_version"].startswith("3.13")
    assert overview["listeners"] == [
        {"node": overview["node"], "protocol": "amqp", "ip_address": "127.0.0.1", "port": 5672}
    ]
