"""Routes of users: shared, cleared in place, bounded."""

from __future__ import annotations

from amqp_broker.broker.routing.route_cache import ROUTES_MAX, RouteCache, keep
from tests.broker_parts import new_route, new_vhost


def test_the_sessions_of_a_user_share_its_routes() -> None:
    cache = RouteCache()
    keep(cache.of("guest"), b"payload", new_route(new_vhost()))
    assert cache.of("guest") is cache.of("guest")
    assert (list(cache.of("guest")), cache.of("other")) == ([b"payload"], {})


def test_the_routes_that_a_session_keeps_are_cleared() -> None:
    cache = RouteCache()
    kept = cache.of("guest")
    keep(kept, b"payload", new_route(new_vhost()))
    cache.clear()
    assert kept == {}
    assert cache.of("guest") is kept


def test_a_full_cache_begins_anew() -> None:
    routes, route = RouteCache().of("guest"), new_route(new_vhost())
    for number in range(ROUTES_MAX):
        keep(routes, b"%d" % number, route)
    assert len(routes) == ROUTES_MAX
    keep(routes, b"new", route)
    assert list(routes) == [b"new"]
