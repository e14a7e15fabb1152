from __future__ import annotations

import pytest

from tests.management.asking import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_limits_of_a_vhost_are_set_listed_and_removed(desk: Desk) -> None:
    assert desk.get("/api/vhost-limits") == (200, [])
    assert desk.ask("PUT", "/api/vhost-limits/%2F/max-queues", {"value": 0})[0] == 204
    assert desk.broker.vhosts["/"].limits["max-queues"] == 0
    described = [{"vhost": "/", "value": {"max-queues": 0}}]
    assert desk.get("/api/vhost-limits") == desk.get("/api/vhost-limits/%2F") == (200, described)
    assert desk.ask("DELETE", "/api/vhost-limits/%2F/max-queues")[0] == 204
    assert desk.ask("DELETE", "/api/vhost-limits/%2F/max-queues")[0] == 204
    assert desk.get("/api/vhost-limits") == (200, [{"vhost": "/", "value": {}}])
    assert desk.ask("DELETE", "/api/parameters/vhost-limits/%2F/limits")[0] == 204
    assert desk.get("/api/vhost-limits") == (200, [])


def test_limits_of_a_user_are_set_listed_and_removed(desk: Desk) -> None:
    assert desk.ask("PUT", "/api/user-limits/guest/max-channels", {"value": 3})[0] == 204
    described = [{"user": "guest", "value": {"max-channels": 3}}]
    assert desk.get("/api/user-limits") == desk.get("/api/user-limits/guest") == (200, described)
    assert desk.get("/api/users/guest")[1]["limits"] == {"max-channels": 3}
    assert desk.ask("DELETE", "/api/user-limits/guest/max-channels")[0] == 204
    assert desk.broker.users["guest"].limits["max-channels"] is None


def test_invalid_limits_are_refused_in_rabbitmqs_words(desk: Desk) -> None:
    assert desk.ask("PUT", "/api/vhost-limits/%2F/max-x", {"value": 1}) == (
        400,
        'Validation failed\n\nUnrecognised terms [{<<"max-x">>,1}] in limits\n',
    )
    assert desk.ask("PUT", "/api/user-limits/guest/max-channels", {"value": "x"}) == (
        400,
        'max-channels should be a number, actually was <<"x">>',
    )
    assert desk.ask("PUT", "/api/vhost-limits/%2F/max-queues", {}) == (400, "[{key_missing,value}]")


def test_missing_vhosts_and_users_have_no_limits(desk: Desk) -> None:
    assert desk.ask("PUT", "/api/vhost-limits/none/max-queues", {"value": 1}) == (404, "vhost_not_found")
    assert desk.ask("PUT", "/api/user-limits/nobody/max-channels", {"value": 1}) == (400, ["no_such_user", "nobody"])
    assert desk.ask("DELETE", "/api/user-limits/nobody/max-channels") == (404, "vhost_not_found")


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**400, True, [], {}, None, 1.5])
def test_a_limit_that_is_not_a_64_bit_integer_is_refused(desk: Desk, value: object) -> None:
    for path in ("/api/vhost-limits/%2F/max-queues", "/api/user-limits/guest/max-channels"):
        assert desk.ask("PUT", path, {"value": value})[0] == 400
    assert desk.get("/api/vhost-limits") == desk.get("/api/user-limits") == (200, [])


def test_a_limit_that_was_never_set_is_removed_and_the_limits_are_listed_from_then_on(desk: Desk) -> None:
    """Seen in RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    assert desk.ask("DELETE", "/api/vhost-limits/%2F/nonsense")[0] == 204
    assert desk.get("/api/parameters/vhost-limits/%2F")[1][0]["name"] == "limits"
