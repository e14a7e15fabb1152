"""The remote backends that the settings name, as the chain of the broker's logins."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.backends.login_chain import chain_of

if TYPE_CHECKING:
    from amqp_broker.broker.backends.questions import Backend
    from amqp_broker.broker.broker import Broker
    from amqp_broker.server.http_auth_backend import HttpAuthBackend

INTERNAL: Final = "internal"


class AuthServices:
    """Connects the logins of a broker with remote backends. `flush` is called after each of their answers."""

    def __init__(self, broker: Broker, flush: Callable[[], None]) -> None:
        """Set the chain of logins. Raises SettingsError for a cache without a backend."""
        self._http: HttpAuthBackend | None = None
        settings = broker.settings
        if settings.auth_backends in ("", INTERNAL):
            return
        # Few brokers have one.
        from amqp_broker.broker.backends.answer_cache import CachedBackend
        from amqp_broker.server.http_auth_backend import HttpAuthBackend
        from amqp_broker.settings.settings import SettingsError

        self._http = HttpAuthBackend(settings, flush)
        words, backends = settings.auth_backends, dict[str, "Backend"](http=self._http)
        if "cache" in words:
            if not settings.auth_cache_backend or "cache" in settings.auth_cache_backend:
                raise SettingsError("auth_backends has a cache, so auth_cache.cached_backend must name http")
            backends["cached"] = CachedBackend(
                self._http,
                settings.auth_cache_ttl_ms,
                broker.real_now,
                broker.entropy(32),
                keeps_refusals=settings.auth_cache_refusals,
            )
            words = _with_cached(words, settings.auth_cache_backend.replace("http", "cached"))
        broker.logins.chain = chain_of(words, backends)

    async def close(self) -> None:
        """End all questions."""
        if self._http is not None:
            await self._http.close()


def _with_cached(words: str, cached: str) -> str:
    """Return the words of a chain with those that `cache` stands for."""
    authn, _, authz = cached.partition("|")
    authz = authz or authn
    found = []
    for word in words.split():
        first, _, others = word.partition("|")
        first_of = authn if first == "cache" else first
        others_of = "+".join(authz if name == "cache" else name for name in (others or first).split("+"))
        found.append(first_of if first_of == others_of else f"{first_of}|{others_of}")
    return " ".join(found)
