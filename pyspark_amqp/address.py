"""The address of a broker, with login and TLS settings."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from pyspark_amqp.errors import OptionError

PORT: Final = 5672
TLS_PORT: Final = 5671


@dataclass(frozen=True)
class Tls:
    """TLS settings: paths of PEM files, or empty strings."""

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Return the TLS context. Raise OptionError for unreadable files."""
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file or None)
        except OSError as error:
            raise OptionError("tls.certFile" if self.cert_file else "tls.caFile", str(error)) from None
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclass(frozen=True)
class Address:
    """A broker, a vhost and a login; `option` is the user's option, for error messages."""

    host: str = "localhost"
    port: int = PORT
    virtual_host: str = "/"
    username: str = "guest"
    password: str = field(default="guest", repr=False)
    tls: Tls | None = None
    option: str = "url"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def from_url(url: str) -> Address:
    """Parse an AMQP URI, amqp[s]://user:password@host:port/vhost. Raise OptionError."""
    # An error must not show the password, so it shows no part of the URL.
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise OptionError("url", str(error)) from None
    if parts.scheme not in ("amqp", "amqps"):
        raise OptionError("url", f"the scheme must be amqp or amqps, not '{parts.scheme}'")
    if parts.query or parts.fragment:
        raise OptionError("url", "must not contain '?' or '#': use the options instead")
    is_tls = parts.scheme == "amqps"
    return Address(
        parts.hostname or "localhost",
        port or (TLS_PORT if is_tls else PORT),
        unquote(parts.path[1:]) or "/",
        unquote(parts.username) if parts.username is not None else "guest",
        unquote(parts.password) if parts.password is not None else "guest",
        Tls() if is_tls else None,
    )
