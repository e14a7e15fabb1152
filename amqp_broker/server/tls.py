"""TLS: from files to a context, and the transport of connections that came in through one.

Handshakes are the loop's: a session begins when one has succeeded, so peers that do not speak TLS, stall or show a
wrong certificate have none. What a session writes and reads is in the clear on its side of the loop's TLS.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from amqp_broker.broker.connection import Tls
from amqp_broker.exit_codes import EX_CONFIG, EX_NOINPUT
from amqp_broker.server import peer_certificate
from amqp_broker.server.transport import Transport

if TYPE_CHECKING:
    from amqp_broker.config import Config
    from amqp_broker.server.authority import Certificates
    from amqp_broker.server.server import Server

logger = logging.getLogger("amqp_broker.server")

# How long a peer may take to answer the end of TLS, before its socket is closed without that.
SHUTDOWN_S: Final = 5.0


class TlsError(Exception):
    """TLS cannot be served; the text is a sentence for the user, `exit_code` that of the program."""

    def __init__(self, sentence: str, exit_code: int = EX_CONFIG) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class _Handshake(ssl.SSLObject):
    """One end of a connection, which tells the log why a handshake fails; event loops tell nobody."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).lower().replace("_", " ")
            verdict = getattr(error, "verify_message", "")
            logger.info("TLS handshake failed: %s", f"{reason}: {verdict}" if verdict else reason)
            raise


def server_context(
    cert_file: str,
    key_file: str = "",
    *,
    key_password: str = "",
    ca_file: str = "",
    verify_peer: bool = False,
    require_peer_cert: bool = False,
) -> ssl.SSLContext:
    """A context for TLS 1.2 and newer, of PEM files; the key may be in the file of the certificate.

    With `verify_peer` clients are asked for a certificate that an authority of `ca_file` has signed, and with
    `require_peer_cert` they must have one. Raises TlsError.
    """
    if not cert_file:
        raise TlsError("TLS wants a certificate: set tls_cert_file and tls_key_file, or tls to 'auto'")
    if require_peer_cert and not verify_peer:
        raise TlsError("tls_require_peer_cert wants tls_verify_peer: nobody would look at the certificate")
    if verify_peer and not ca_file:
        raise TlsError("tls_verify_peer wants tls_ca_file, the authorities that sign certificates of clients")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.sslobject_class = _Handshake
    _load_certificate(context, cert_file, key_file or cert_file, key_password)
    if ca_file:
        _require(ca_file, "CERTIFICATE-----", "a certificate")
        try:
            context.load_verify_locations(ca_file)
        except ssl.SSLError:
            raise TlsError(f"'{ca_file}' has a certificate that cannot be read") from None
    if verify_peer:
        context.verify_mode = ssl.CERT_REQUIRED if require_peer_cert else ssl.CERT_OPTIONAL
    return context


def _load_certificate(context: ssl.SSLContext, cert_file: str, key_file: str, key_password: str) -> None:
    _require(cert_file, "CERTIFICATE-----", "a certificate")
    _require(key_file, "PRIVATE KEY-----", "a key")
    asked = False

    def password() -> str:
        # Without this OpenSSL would ask for it at the terminal.
        nonlocal asked
        asked = True
        return key_password

    try:
        context.load_cert_chain(cert_file, key_file, password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsError(f"the key '{key_file}' is not that of the certificate '{cert_file}'") from None
        if asked and key_password:
            raise TlsError(f"tls_key_password does not open the key '{key_file}'") from None
        if asked:
            raise TlsError(f"the key '{key_file}' is encrypted: set tls_key_password") from None
        reason = (error.reason or "not valid").lower().replace("_", " ")
        raise TlsError(f"the certificate '{cert_file}' and its key '{key_file}' cannot be used: {reason}") from None


def _require(path: str, mark: str, what: str) -> None:
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise TlsError(f"cannot read '{path}': {error.strerror}", EX_NOINPUT) from None
    if mark.encode() not in text:
        raise TlsError(f"'{path}' is not {what} in PEM format")


class Listener(NamedTuple):
    """What AMQP over TLS is served with; `own` are the certificates that the broker made itself."""

    context: ssl.SSLContext
    login_from: str
    # By OpenSSL's name of a cipher suite: key exchange, cipher and hash as Erlang names them.
    suites: dict[str, tuple[str, str, str]]
    own: Certificates | None


def listener(config: Config) -> Listener | None:
    """What the settings say of AMQP over TLS; None if it is off. Raises TlsError."""
    if not config.has_tls:
        return None
    own = None
    if config.tls == "auto" and not config.tls_cert_file:
        # It needs a library that not everybody has, and that takes a while to import.
        from amqp_broker.server import authority

        own = authority.certificates(own_folder(config), (config.host,), config.default_user)
        context = server_context(
            str(own.server_certificate),
            str(own.server_key),
            ca_file=config.tls_ca_file or str(own.ca_certificate),
            verify_peer=True,
            require_peer_cert=config.tls_require_peer_cert,
        )
    else:
        context = server_context(
            config.tls_cert_file,
            config.tls_key_file,
            key_password=config.tls_key_password,
            ca_file=config.tls_ca_file,
            verify_peer=config.tls_verify_peer,
            require_peer_cert=config.tls_require_peer_cert,
        )
    return Listener(context, config.tls_login_from, _suites(context), own)


def own_folder(config: Config) -> Path:
    """Where the broker keeps certificates that it made itself: with its data, or in the user's cache if it has none."""
    folder = config.store_path
    if folder is None:
        import platformdirs

        folder = platformdirs.user_cache_path("amqp-broker", appauthor=False)
    return folder / "tls"


def _suites(context: ssl.SSLContext) -> dict[str, tuple[str, str, str]]:
    suites = {}
    for suite in context.get_ciphers():
        exchange, auth = suite["kea"].removeprefix("kx-"), suite["auth"].removeprefix("auth-")
        # Only where the key exchange does not authenticate (RSA's does), or where the suite leaves both open.
        key_exchange = exchange if exchange == auth else f"{exchange}_{auth}"
        digest = "aead" if suite["aead"] else str(suite["digest"]).replace("sha1", "sha")
        suites[suite["name"]] = (key_exchange, suite["symmetric"].replace("-", "_"), digest)
    return suites


def facts(connected: ssl.SSLObject, suites: dict[str, tuple[str, str, str]], login_from: str) -> Tls:
    """What there is to say of a connection whose handshake has succeeded."""
    name, version, _ = connected.cipher() or ("", "", 0)
    key_exchange, cipher, digest = suites.get(name, ("", name, ""))
    protocol = (connected.version() or version).lower()
    certificate = connected.getpeercert()
    if not certificate:
        return Tls(protocol, key_exchange, cipher, digest)
    return Tls(
        *(protocol, key_exchange, cipher, digest),
        peer_certificate.distinguished_name(certificate.get("subject", ())),  # type: ignore[arg-type]
        peer_certificate.distinguished_name(certificate.get("issuer", ())),  # type: ignore[arg-type]
        peer_certificate.validity(certificate),
        peer_certificate.login_name(certificate, login_from),
    )


class TlsTransport(Transport):
    """The protocol object of one AMQP connection over TLS; its session knows so before the first byte."""

    def __init__(self, server: Server, served: Listener) -> None:
        super().__init__(server)
        self.served = served

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        connected = transport.get_extra_info("ssl_object")
        self.session.tls = facts(connected, self.served.suites, self.served.login_from)


def management_context(config: Config, amqp: Listener | None) -> ssl.SSLContext | None:
    """What the HTTP API is served with over TLS, beside the plain port: certificates of its own, or those of AMQP.

    None if there are neither. Raises TlsError.
    """
    if config.management_tls_cert_file:
        return server_context(
            config.management_tls_cert_file,
            config.management_tls_key_file,
            ca_file=config.management_tls_ca_file,
        )
    if amqp is not None and amqp.own is not None:
        return server_context(str(amqp.own.server_certificate), str(amqp.own.server_key))
    if config.management_tls_port is None and amqp is None:
        return None
    return server_context(config.tls_cert_file, config.tls_key_file, key_password=config.tls_key_password)
