"""The address of a broker: hosts, login, TLS settings and time limits."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from pyspark_amqp.errors import OptionError

PORT: Final = 5672
TLS_PORT: Final = 5671
_URL: Final = re.compile(r"(amqps?)://([^/?#]*)(/[^?#]*)?(?:\?([^#]*))?")
# Parameters for larger systems of clients, of which this client has no use.
IGNORED: Final = ("channel_max", "frame_max", "connection_attempts", "retry_delay", "socket_timeout")
MECHANISMS: Final = ("plain", "external")


@dataclass(frozen=True)
class Tls:
    """TLS settings: paths of PEM files, or empty strings; `server_name` is that of the certificate, or the host's."""

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    verify: bool = True
    server_name: str = ""

    def context(self) -> ssl.SSLContext:
        """Return the TLS context. Raise OptionError for unreadable files."""
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
        except OSError as error:
            raise OptionError("tls.caFile", f"cannot read '{self.ca_file}': {error}") from None
        try:
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file or None)
        except OSError as error:
            files = f"'{self.cert_file}'" + (f" with '{self.key_file}'" if self.key_file else "")
            raise OptionError("tls.certFile", f"cannot read {files}: {error}") from None
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


class Host(NamedTuple):
    """One of the hosts at which a broker listens."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


@dataclass(frozen=True)
class PasswordSource:
    """The file (`passwordFile`) or the environment variable (`passwordEnv`) that has the password."""

    option: str
    name: str

    def read(self) -> str:
        """Return the password that is there now. Raise OptionError."""
        if self.option == "passwordEnv":
            password = os.environ.get(self.name)
            if password is None:
                raise OptionError(self.option, f"there is no environment variable {self.name}")
            return password
        try:
            return Path(self.name).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(self.option, str(error)) from None


@dataclass(frozen=True)
class Address:
    """A broker's hosts, a vhost and a login; `option` is the user's option, for error messages.

    `password` is the one with which the query was planned. With `mechanism` external, the certificate names the user.

    After `reconnect_timeout_s` without a connection, a job gives up. A heartbeat of 0 means none.
    """

    hosts: tuple[Host, ...] = (Host("localhost", PORT),)
    virtual_host: str = "/"
    username: str = "guest"
    password: str = field(default="guest", repr=False)
    tls: Tls | None = None
    option: str = "url"
    password_source: PasswordSource | None = None
    mechanism: str = "plain"
    heartbeat_s: int = 30
    connect_timeout_s: float = 10.0
    reconnect_timeout_s: float = 300.0

    def __str__(self) -> str:
        return ", ".join(map(str, self.hosts))

    def current_password(self) -> str:
        """Return the password of the file or variable, or the planned one where this process has neither."""
        if self.password_source is None:
            return self.password
        try:
            return self.password_source.read()
        except OptionError:
            return self.password


def from_url(url: str) -> Address:
    """Parse an AMQP URI, amqp[s]://user:password@host:port,host:port/vhost?parameters. Raise OptionError."""
    found = _URL.fullmatch(url)
    if found is None:
        raise OptionError("url", "must be amqp://user:password@host:port/vhost, or begin with amqps://")
    scheme, place, path, query = found.groups(default="")
    login, at, names = place.rpartition("@")
    # An error must not show a password.
    if not at and "@" in path + query:
        raise OptionError("url", "write '/' in a login as %2F, '?' as %3F, '#' as %23, and '@' elsewhere as %40")
    username, colon, password = login.partition(":")
    is_tls = scheme == "amqps"
    address = Address(
        read_hosts(names, TLS_PORT if is_tls else PORT, "url"),
        unquote(path[1:]) or "/",
        unquote(username) if at else "guest",
        unquote(password) if colon else "guest",
        Tls() if is_tls else None,
    )
    for name, text in parse_qsl(query, keep_blank_values=True):
        address = _with_parameter(address, name, text)
    return address


def read_hosts(text: str, port: int, option: str) -> tuple[Host, ...]:
    """Return the hosts of `host:port,host,…`; localhost for an empty text. Raise OptionError with this name."""
    if text and not all(text.split(",")):
        raise OptionError(option, "has an empty host beside a comma")
    try:
        found = [urlsplit(f"//{part}") for part in text.split(",")]
        hosts = tuple(Host(part.hostname or "localhost", part.port or port) for part in found)
    except ValueError:
        raise OptionError(option, "a host must be name or name:port, with a port from 1 to 65535") from None
    return hosts


def _with_parameter(address: Address, name: str, text: str) -> Address:
    """Return the address with a parameter of RabbitMQ's URIs. Raise OptionError."""
    if name in IGNORED:
        return address
    if name == "auth_mechanism":
        return _auth_mechanism(address, text)
    if name in _PARAMETERS:
        return _PARAMETERS[name](address, text)
    if name not in _TLS_PARAMETERS:
        known = ", ".join((*_PARAMETERS, *_TLS_PARAMETERS, *IGNORED, "auth_mechanism"))
        raise OptionError("url", f"unknown parameter '{name}'; known are {known}")
    if address.tls is None:
        raise OptionError("url", f"parameter '{name}' needs amqps")
    return replace(address, tls=_TLS_PARAMETERS[name](address.tls, text))


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise OptionError("url", f"parameter '{name}' must be a whole number, not '{text}'")
    return int(text)


def _auth_mechanism(address: Address, text: str) -> Address:
    if text.lower() not in MECHANISMS:
        raise OptionError("url", f"parameter 'auth_mechanism' must be {' or '.join(MECHANISMS)}, not '{text}'")
    return replace(address, mechanism=text.lower())


def _heartbeat(address: Address, text: str) -> Address:
    return replace(address, heartbeat_s=min(_number("heartbeat", text), 65_535))


def _connection_timeout(address: Address, text: str) -> Address:
    # RabbitMQ's clients count it in milliseconds.
    return replace(address, connect_timeout_s=max(_number("connection_timeout", text), 1) / 1000)


def _verify(text: str) -> bool:
    if text not in ("verify_peer", "verify_none"):
        raise OptionError("url", f"parameter 'verify' must be verify_peer or verify_none, not '{text}'")
    return text == "verify_peer"


_PARAMETERS: Final[dict[str, Callable[[Address, str], Address]]] = {
    "heartbeat": _heartbeat,
    "connection_timeout": _connection_timeout,
}
_TLS_PARAMETERS: Final[dict[str, Callable[[Tls, str], Tls]]] = {
    "cacertfile": lambda tls, text: replace(tls, ca_file=text),
    "certfile": lambda tls, text: replace(tls, cert_file=text),
    "keyfile": lambda tls, text: replace(tls, key_file=text),
    "verify": lambda tls, text: replace(tls, verify=_verify(text)),
    "server_name_indication": lambda tls, text: replace(tls, server_name=text),
}
