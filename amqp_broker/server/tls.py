"""TLS: creates contexts from files, and has the transport of TLS connections.

The event loop does handshakes: a session begins after a successful one. Peers that do not speak TLS, stall or have an
invalid certificate get no session. A session reads and writes plaintext.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amqp_broker.broker.clients.peer import Tls
from amqp_broker.exit_codes import EX_CONFIG, EX_NOINPUT
from amqp_broker.server import peer_certificate
from amqp_broker.server.buffered_transport import BufferedTransport
from amqp_broker.server.handshakes import Handshakes

if TYPE_CHECKING:
    from amqp_broker.server.certificate_authority import Certificates
    from amqp_broker.server.flush_cycle import FlushCycle
    from amqp_broker.settings.settings import Settings

logger = logging.getLogger("amqp_broker.server")

# Time for a peer to answer the TLS close, after which its socket is closed.
SHUTDOWN_S: Final = 5.0
# Older ones are not supported.
VERSIONS: Final = {"tlsv1.2": ssl.TLSVersion.TLSv1_2, "tlsv1.3": ssl.TLSVersion.TLSv1_3}


class TlsError(Exception):
    """TLS cannot be served; the text is for the user, and `exit_code` is the exit code of the program."""

    def __init__(self, sentence: str, exit_code: int = EX_CONFIG) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


# Explanations of OpenSSL's reasons for peers that do not speak TLS; OpenSSL sends them no alert.
HINTS: Final = {
    "WRONG_VERSION_NUMBER": "the client may connect without TLS",
    "HTTP_REQUEST": "the client connects without TLS",
}
# Of all listeners of the process.
handshakes: Final = Handshakes()


class _Handshake(ssl.SSLObject):
    """A TLS connection that logs failed handshakes, since event loops do not, and bounds their number."""

    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._failure is not None:
            handshakes.end(self)
            raise self._failure
        if not handshakes.begin(self, asyncio.get_running_loop().time()):
            raise ssl.SSLError("too many handshakes are under way")
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).lower().replace("_", " ")
            verdict = getattr(error, "verify_message", "") or HINTS.get(error.reason or "", "")
            logger.info("TLS handshake failed: %s", f"{reason}: {verdict}" if verdict else reason)
            if error.reason in HINTS:
                handshakes.end(self)
                raise
            # OpenSSL's alert names the reason to the peer. Event loops write it only while a handshake goes on: this
            # one fails when the peer, which closes its socket then, does so, or when its time is over. A traceback
            # would refer to this object, which is to be freed at once.
            self._failure = error.with_traceback(None)
            raise ssl.SSLWantReadError from None
        handshakes.end(self)


def server_context(
    cert_file: str,
    key_file: str = "",
    *,
    key_password: str = "",
    ca_file: str = "",
    verify_peer: bool = False,
    require_peer_cert: bool = False,
    versions: str = "",
) -> ssl.SSLContext:
    """Return a context from PEM files; the first file may contain the key.

    It accepts these versions of TLS (`tlsv1.2 tlsv1.3`), or both. With `verify_peer`, clients are asked for a
    certificate that an authority of `ca_file` has signed; with `require_peer_cert`, they must have one. Raise TlsError.
    """
    if not cert_file:
        raise TlsError("TLS requires a certificate: set tls_cert_file and tls_key_file, or tls to 'auto'")
    if require_peer_cert and not verify_peer:
        raise TlsError("tls_require_peer_cert requires tls_verify_peer: otherwise the certificate is not checked")
    if verify_peer and not ca_file:
        raise TlsError("tls_verify_peer requires tls_ca_file, the authorities that sign certificates of clients")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _limit_versions(context, versions)
    context.options |= ssl.OP_NO_RENEGOTIATION
    # Erlang sends no session tickets; the Java client reads one as the beginning of a frame if it uses NIO.
    context.num_tickets = 0
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


def _limit_versions(context: ssl.SSLContext, versions: str) -> None:
    """Have a context accept these versions of those that are supported: none if all of them are older."""
    accepted = [VERSIONS[name] for name in versions.split() if name in VERSIONS]
    context.minimum_version = min(accepted, default=ssl.TLSVersion.TLSv1_2)
    if accepted:
        context.maximum_version = max(accepted)
    elif versions:
        # RabbitMQ starts, too.
        logger.warning("no client can connect with TLS: the broker has none of its versions '%s'", versions)
        context.maximum_version = ssl.TLSVersion.MINIMUM_SUPPORTED


def _load_certificate(context: ssl.SSLContext, cert_file: str, key_file: str, key_password: str) -> None:
    _require(cert_file, "CERTIFICATE-----", "a certificate")
    _require(key_file, "PRIVATE KEY-----", "a key")
    asked = False

    def password() -> str:
        # Without this callback OpenSSL would prompt for a password at the terminal.
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
    """The TLS settings of AMQP listeners; `own` has the certificates that the broker has created."""

    context: ssl.SSLContext
    login_from: str
    # Key exchange, cipher and hash with their names in Erlang, by OpenSSL's name of a cipher suite.
    suites: dict[str, tuple[str, str, str]]
    own: Certificates | None


def listener(settings: Settings) -> Listener | None:
    """Return the TLS settings of AMQP listeners; None if TLS is off. Raise TlsError."""
    if not settings.has_tls:
        return None
    own = None
    if settings.tls == "auto" and not settings.tls_cert_file:
        # Requires an optional library with a slow import.
        from amqp_broker.server import certificate_authority

        own = certificate_authority.certificates(own_folder(settings), (settings.host,), settings.default_user)
        context = server_context(
            str(own.server_certificate),
            str(own.server_key),
            ca_file=settings.tls_ca_file or str(own.ca_certificate),
            verify_peer=True,
            require_peer_cert=settings.tls_require_peer_cert,
            versions=settings.tls_versions,
        )
    else:
        context = server_context(
            settings.tls_cert_file,
            settings.tls_key_file,
            key_password=settings.tls_key_password,
            ca_file=settings.tls_ca_file,
            verify_peer=settings.tls_verify_peer,
            require_peer_cert=settings.tls_require_peer_cert,
            versions=settings.tls_versions,
        )
    return Listener(context, settings.tls_login_from, _suites(context), own)


def own_folder(settings: Settings) -> Path:
    """Return the folder of the broker's own certificates: in its data folder, or else in the user's cache."""
    folder = settings.store_path
    if folder is None:
        import platformdirs

        folder = platformdirs.user_cache_path("amqp-broker", appauthor=False)
    return folder / "tls"


def _suites(context: ssl.SSLContext) -> dict[str, tuple[str, str, str]]:
    suites = {}
    for suite in context.get_ciphers():
        exchange, auth = suite["kea"].removeprefix("kx-"), suite["auth"].removeprefix("auth-")
        # A key exchange that authenticates, such as RSA, has one name; TLS 1.3 suites leave both open.
        key_exchange = exchange if exchange == auth else f"{exchange}_{auth}"
        digest = "aead" if suite["aead"] else str(suite["digest"]).replace("sha1", "sha")
        suites[suite["name"]] = (key_exchange, suite["symmetric"].replace("-", "_"), digest)
    return suites


def tls_of(connected: ssl.SSLObject, suites: dict[str, tuple[str, str, str]], login_from: str) -> Tls:
    """Return the TLS properties of a connection after its handshake."""
    name, version, _ = connected.cipher() or ("", "", 0)
    key_exchange, cipher, digest = suites.get(name, ("", name, ""))
    protocol = (connected.version() or version).lower()
    certificate: Mapping[str, Any] | None = connected.getpeercert()
    if not certificate:
        return Tls(protocol, key_exchange, cipher, digest)
    return Tls(
        *(protocol, key_exchange, cipher, digest),
        peer_certificate.distinguished_name(certificate.get("subject", ())),
        peer_certificate.distinguished_name(certificate.get("issuer", ())),
        peer_certificate.validity(certificate),
        str(int(certificate.get("serialNumber", "0"), 16)),
        peer_certificate.login_name(certificate, login_from),
    )


class TlsTransport(BufferedTransport):
    """The transport of a TLS connection; sets the TLS properties of its session before the first byte."""

    def __init__(self, cycle: FlushCycle, served: Listener) -> None:
        super().__init__(cycle)
        self.served = served

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        connected = transport.get_extra_info("ssl_object")
        self.session.tls = tls_of(connected, self.served.suites, self.served.login_from)


def management_context(settings: Settings, amqp: Listener | None) -> ssl.SSLContext | None:
    """Return the TLS context of the HTTP API: from certificates of its own, or from those of AMQP.

    Return None if there are neither. Raise TlsError.
    """
    versions = settings.management_tls_versions
    if settings.management_tls_cert_file:
        return server_context(
            settings.management_tls_cert_file,
            settings.management_tls_key_file,
            ca_file=settings.management_tls_ca_file,
            versions=versions,
        )
    if amqp is not None and amqp.own is not None:
        return server_context(str(amqp.own.server_certificate), str(amqp.own.server_key), versions=versions)
    if settings.management_tls_port is None and amqp is None:
        return None
    return server_context(
        settings.tls_cert_file, settings.tls_key_file, key_password=settings.tls_key_password, versions=versions
    )
