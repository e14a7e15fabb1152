"""Questions to an HTTP service: RabbitMQ's plugin rabbitmq_auth_backend_http.

Source: rabbit_auth_backend_http.erl. Answers, waits and connections are bounded, so a service that is slow or lies
costs its own clients alone.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus

from amqp_broker.broker.backends.questions import RESOURCE, TOPIC, USER, VHOST, Answer, Question

if TYPE_CHECKING:
    import aiohttp

    from amqp_broker.settings.settings import Settings

logger = logging.getLogger("amqp_broker.server")

# Octets of an answer that are read, and characters of an unknown one that the log shows.
ANSWER_BYTES_MAX: Final = 16 * 1024
SHOWN_MAX: Final = 100
# Connections to the service.
CONNECTIONS_MAX: Final = 64
# Attempts more where the service closes a connection that was kept (RETRY_ON_KEEPALIVE_CLOSED).
RETRIES_MAX: Final = 3
SUCCESSFUL: Final = (200, 201)


class HttpAuthBackend:
    """Asks the paths of the settings `auth_http_…`. `flush` is called after each answer."""

    name = "rabbit_auth_backend_http"

    def __init__(self, settings: Settings, flush: Callable[[], None]) -> None:
        self._settings = settings
        self._flush = flush
        self._tasks: set[asyncio.Task[None]] = set()
        self._client: aiohttp.ClientSession | None = None
        self._paths = {
            USER: settings.auth_http_user_path,
            VHOST: settings.auth_http_vhost_path,
            RESOURCE: settings.auth_http_resource_path,
            TOPIC: settings.auth_http_topic_path,
        }

    def ask(self, question: Question, on_answer: Callable[[Answer], None]) -> None:
        task = asyncio.get_running_loop().create_task(self._ask(question, on_answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End all questions without an answer."""
        for task in list(self._tasks):
            task.cancel()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, question: Question, on_answer: Callable[[Answer], None]) -> None:
        import aiohttp

        try:
            async with asyncio.timeout(self._settings.auth_http_request_timeout_ms / 1000):
                answer = _answer(question, *await self._fetch(question))
        except TimeoutError:
            answer = Answer(False, error="timeout")
        except aiohttp.ClientConnectorError as error:
            answer = Answer(False, error=_failed_connect(error))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            answer = Answer(False, error=f"{type(error).__name__}: {_shown(str(error))}")
        on_answer(answer)
        self._flush()

    async def _fetch(self, question: Question) -> tuple[int, str]:
        """Return status and text of the answer. A kept connection that the service has closed is replaced."""
        import aiohttp

        for _ in range(RETRIES_MAX):
            try:
                return await self._fetch_once(question)
            except aiohttp.ServerDisconnectedError:
                pass
        return await self._fetch_once(question)

    async def _fetch_once(self, question: Question) -> tuple[int, str]:
        from yarl import URL

        if self._client is None:
            self._client = _new_client(self._settings)
        query = "&".join(f"{name}={_quoted(value)}" for name, value in question.parameters)
        path = self._paths[question.kind]
        # A redirected question would take the password elsewhere.
        if self._settings.auth_http_method == "get":
            asked = self._client.get(URL(f"{path}?{query}", encoded=True), allow_redirects=False)
        else:
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            asked = self._client.post(URL(path), data=query.encode(), headers=form, allow_redirects=False)
        async with asked as response:
            try:
                await response.content.readexactly(ANSWER_BYTES_MAX + 1)
            except asyncio.IncompleteReadError as end:
                return response.status, end.partial.decode("utf-8", "replace")
            raise ValueError(f"the answer is larger than {ANSWER_BYTES_MAX} bytes")


def _new_client(settings: Settings) -> aiohttp.ClientSession:
    """Return a client with the TLS options of the settings. Raises OSError for a file that cannot be used."""
    import aiohttp

    context = ssl.create_default_context(cafile=settings.auth_http_cacertfile or None)
    if not settings.auth_http_verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if settings.auth_http_certfile:
        # Without a password OpenSSL would prompt for one at the terminal and block the broker.
        context.load_cert_chain(
            settings.auth_http_certfile, settings.auth_http_keyfile or None, settings.auth_http_key_password
        )
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, ssl=context),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=settings.auth_http_connection_timeout_ms / 1000),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        auto_decompress=False,
    )


def _quoted(value: str | bytes) -> str:
    return quote_plus(value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape"))


def _answer(question: Question, status: int, text: str) -> Answer:
    """Return what a service has said, in any case of letters: `allow`, for a user with tags, or `deny`."""
    if status not in SUCCESSFUL:
        return Answer(False, error=f'{{{status},"{_shown(text)}"}}')
    word, *rest = text.lower().split() or [""]
    if word == "deny":
        if rest:
            logger.info("%s denied by the HTTP service: %s", question.kind, _shown(" ".join(text.split()[1:])))
        return Answer(False)
    if word == "allow" and (question.kind == USER or not rest):
        return Answer(True, tuple(rest))
    return Answer(False, error=f'{{bad_response,"{_shown(text)}"}}')


def _shown(text: str) -> str:
    """Return the beginning of a text of a service as printable characters."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[: SHOWN_MAX + 1])
    return shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}..."


def _failed_connect(error: aiohttp.ClientConnectorError) -> str:
    """Return the error of a connection that failed as Erlang writes it."""
    reason = errno.errorcode.get(error.os_error.errno or 0, "").lower() or _shown(str(error.os_error))
    address = f'{{to_address,{{"{error.host}",{error.port}}}}}'
    return f"{{failed_connect,[{address},{{inet,[inet],{reason}}}]}}"
