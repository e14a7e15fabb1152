"""The upstream's version and limits, requested before the first client connects."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import Any, Final

from pamqp import commands

from amqp_broker.amqp.frames import PROTOCOL_HEADER, method_frame
from amqp_broker.amqp.methods import encode_method
from amqp_broker.compare.method_reader import MethodReader, Unreadable
from amqp_broker.compare.older_rabbitmq import numbers_of
from amqp_broker.server.link_tls import tls_context
from amqp_broker.settings.profiles import DEFAULT, PROFILES
from amqp_broker.shovel.amqp_client import call
from amqp_broker.shovel.shovel_definition import Uri

TIMEOUT_S: Final = 10.0
READ_BYTES: Final = 64 * 1024


class NoUpstream(Exception):
    """Cannot connect or log in; the text says why. `is_refusal` if the upstream refused the login."""

    def __init__(self, reason: str, is_refusal: bool = False) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal


@dataclass(frozen=True)
class Upstream:
    """The upstream's product, version and limits from connection.tune."""

    product: str
    version: str
    channel_max: int
    frame_max: int
    heartbeat_s: int

    @property
    def profile(self) -> str:
        """Return the closest profile: the newest that is not newer than the upstream, or the oldest."""
        return nearest_profile(self.version)


def nearest_profile(version: str) -> str:
    """Return the newest profile up to this version, or the oldest; the default for an invalid version."""
    wanted = numbers_of(version)
    if not wanted:
        return DEFAULT
    profiles = sorted(PROFILES, key=numbers_of)
    older = [name for name in profiles if numbers_of(name) <= wanted]
    return older[-1] if older else profiles[0]


def secured(uri: Uri) -> tuple[ssl.SSLContext | None, str | None]:
    """Return TLS context and server name, both None without TLS. Raise OSError for a missing file."""
    if uri.scheme != "amqps":
        return None, None
    return tls_context(uri), uri.query.get("server_name_indication", uri.host.strip("[]"))


def _files_of(uri: Uri) -> str:
    """Return the files that a URI names: OpenSSL does not say which one it could not read."""
    named = [f"{key}={uri.query[key]}" for key in ("cacertfile", "certfile", "keyfile") if key in uri.query]
    return f" ({', '.join(named)})" if named else ""


async def ask(uri: Uri) -> Upstream:
    """Log in, disconnect, and return what the upstream reported. Raise NoUpstream."""
    try:
        context, name = secured(uri)
    except (OSError, ValueError) as error:
        raise NoUpstream(f"cannot connect to {uri}: {error}{_files_of(uri)}") from None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(
                uri.host.strip("[]"), uri.port, ssl=context, server_hostname=name
            )
    except TimeoutError:
        raise NoUpstream(f"cannot connect to {uri}: it does not answer") from None
    except (OSError, ValueError) as error:
        raise NoUpstream(f"cannot connect to {uri}: {error}") from None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _ask(uri, reader, writer)
    except TimeoutError:
        raise NoUpstream(f"{uri} does not answer; it may not speak AMQP 0-9-1") from None
    except (OSError, Unreadable):
        raise NoUpstream(f"{uri} does not speak AMQP 0-9-1") from None
    finally:
        writer.close()


async def _ask(uri: Uri, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Upstream:
    listener = MethodReader()
    writer.write(PROTOCOL_HEADER)
    start = await _next(listener, reader, uri)
    if not isinstance(start, commands.Connection.Start):
        raise Unreadable("no connection.start")
    properties: Any = start.server_properties
    capabilities = {"authentication_failure_close": True}
    start_ok = call(
        commands.Connection.StartOk,
        client_properties={"product": "amqp-broker compare", "capabilities": capabilities},
        mechanism="PLAIN",
        response=f"\0{uri.user}\0{uri.password}",
        locale="en_US",
    )
    writer.write(method_frame(0, encode_method(start_ok)))
    tune: Any = await _next(listener, reader, uri)
    if not isinstance(tune, commands.Connection.Tune):
        reason = getattr(tune, "reply_text", "a name and a password are not enough")
        raise NoUpstream(f"{uri} refuses the login of '{uri.user}': {reason}", is_refusal=True)
    product, version = (str(properties.get(name, "")) for name in ("product", "version"))
    return Upstream(product, version, tune.channel_max, tune.frame_max, tune.heartbeat)


async def _next(listener: MethodReader, reader: asyncio.StreamReader, uri: Uri) -> Any:
    """Return the next method on channel 0. Raise NoUpstream or Unreadable."""
    while True:
        data = await reader.read(READ_BYTES)
        if not data:
            raise NoUpstream(f"{uri} closed the connection without a reason", is_refusal=True)
        for said in listener.hear(data):
            return said.method
