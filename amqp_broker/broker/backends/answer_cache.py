"""A backend that keeps another one's answers for a while (rabbit_auth_backend_cache.erl)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from amqp_broker.broker.backends.questions import Answer, Backend, Question

# Answers that are kept; the oldest is forgotten first.
CACHED_MAX: Final = 10_000


class CachedBackend:
    """Keeps permissions of `backend` for `ttl_ms`; refusals only with `keeps_refusals`, errors never.

    `now` is in ms. A question is kept as its hash, with `salt`, because it may have a password.
    """

    name = "rabbit_auth_backend_cache"

    def __init__(
        self, backend: Backend, ttl_ms: int, now: Callable[[], int], salt: bytes, *, keeps_refusals: bool = False
    ) -> None:
        self._backend = backend
        self._ttl_ms = ttl_ms
        self._now = now
        self._salt = salt
        self._keeps_refusals = keeps_refusals
        # By the hash of the question: the answer, and when it ends (ms). The newest is last.
        self._cached: dict[bytes, tuple[Answer, int]] = {}

    def ask(self, question: Question, on_answer: Callable[[Answer], None]) -> None:
        key = self._key(question)
        answer, until_ms = self._cached.get(key, (None, 0))
        if answer is not None and self._now() < until_ms:
            on_answer(answer)
            return

        def keep(answer: Answer) -> None:
            self._cached.pop(key, None)
            if answer.is_allowed or (self._keeps_refusals and not answer.error):
                self._cached[key] = answer, self._now() + self._ttl_ms
                if len(self._cached) > CACHED_MAX:
                    del self._cached[next(iter(self._cached))]
            on_answer(answer)

        self._backend.ask(question, keep)

    def clear(self) -> None:
        """Forget all answers."""
        self._cached.clear()

    def _key(self, question: Question) -> bytes:
        digest = hashlib.blake2b(question.kind.encode(), key=self._salt, digest_size=32)
        for name, value in question.parameters:
            octets = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
            digest.update(b"%s %d %s" % (name.encode(), len(octets), octets))
        return digest.digest()
