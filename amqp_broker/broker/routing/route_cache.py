"""The cached routes of a vhost, by user and by the payload of basic.publish.

A route depends on vhost, user, exchange, key and flags. A thousand connections of one user share its routes, and
clearing the cache is one loop over a few dicts. Every change of topology, policy or permission clears it, so a cached
route is always true. Only a route whose topic the user may write is plain; a plain publish therefore checks no
permission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from amqp_broker.broker.routing.route import Route

# Routes of one user. Beyond them the dict is emptied, so that ever new keys do not grow it without bound.
ROUTES_MAX: Final = 16_384

# The routes of one user, by the payload of basic.publish.
Routes: TypeAlias = "dict[bytes, Route]"


class RouteCache:
    """The routes of each user. A session keeps the dict of its user, so `clear` empties these dicts in place."""

    __slots__ = ("_by_user",)

    def __init__(self) -> None:
        self._by_user: dict[str, Routes] = {}

    def of(self, user: str) -> Routes:
        """Return the routes of a user, to read and to add to."""
        return self._by_user.setdefault(user, {})

    def forget(self, user: str) -> None:
        """Forget a user whose last session has ended."""
        self._by_user.pop(user, None)

    def clear(self) -> None:
        """Forget all routes, which may no longer hold."""
        for routes in self._by_user.values():
            routes.clear()


def keep(routes: Routes, payload: bytes, route: Route) -> None:
    """Add a route to those of a user."""
    if len(routes) >= ROUTES_MAX:
        routes.clear()
    routes[payload] = route
