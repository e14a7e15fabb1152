"""The broker's own certificate authority, for `--tls auto` and `amqp-broker tls`.

A folder holds PEM files with the names of RabbitMQ's documentation. The authority is kept as long as it is valid, so
that clients still trust it when the broker gets a new certificate.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from amqp_broker.exit_codes import EX_CANTCREAT
from amqp_broker.server.tls import TlsError

# The longest validity that Apple's systems accept from an authority installed by the user.
VALID: Final = timedelta(days=825)
# Remaining validity below which a certificate is replaced.
VALID_MIN: Final = timedelta(days=30)
# Longest common name (RFC 5280, ub-common-name).
COMMON_NAME_MAX: Final = 64
_HOST_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.I)


@dataclass(frozen=True)
class Certificates:
    """The paths of the files in a folder."""

    folder: Path

    @property
    def ca_certificate(self) -> Path:
        return self.folder / "ca_certificate.pem"

    @property
    def ca_key(self) -> Path:
        return self.folder / "ca_key.pem"

    @property
    def server_certificate(self) -> Path:
        return self.folder / "server_certificate.pem"

    @property
    def server_key(self) -> Path:
        return self.folder / "server_key.pem"

    @property
    def client_certificate(self) -> Path:
        return self.folder / "client_certificate.pem"

    @property
    def client_key(self) -> Path:
        return self.folder / "client_key.pem"


def certificates(folder: Path, hosts: Iterable[str] = (), user: str = "guest") -> Certificates:
    """Return certificates for a broker on this machine with all its names and `hosts`, and for the client `user`.

    Valid files of the folder are reused if they are for these names. Raise TlsError if a host is
    invalid, or the folder cannot be written.
    """
    # Its import takes a fifth of a second, and most brokers create no certificates.
    import trustme

    names = _names(hosts)
    files, now = Certificates(folder), datetime.now(UTC)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            authority = None
            if _is_valid(files.ca_certificate, now):
                with contextlib.suppress(OSError, ValueError):
                    authority = trustme.CA.from_pem(files.ca_certificate.read_bytes(), files.ca_key.read_bytes())
            is_new = authority is None
            if authority is None:
                authority = trustme.CA(organization_name="amqp-broker", organization_unit_name="own authority")
                _write(files.ca_key, authority.private_key_pem.bytes(), is_secret=True)
                _write(files.ca_certificate, authority.cert_pem.bytes())
            if is_new or not _is_valid(files.server_certificate, now, names) or not files.server_key.exists():
                made = authority.issue_cert(*names, common_name="localhost", **_subject("server", now))
                _write_pair(made, files.server_certificate, files.server_key)
            if is_new or not _is_valid(files.client_certificate, now, user=user) or not files.client_key.exists():
                made = authority.issue_cert(common_name=user[:COMMON_NAME_MAX], **_subject("client", now))
                _write_pair(made, files.client_certificate, files.client_key)
    except OSError as error:
        where = error.filename or folder
        raise TlsError(f"cannot write certificates to '{where}': {error.strerror}", EX_CANTCREAT) from None
    return files


def _subject(kind: str, now: datetime) -> dict[str, Any]:
    return {"organization_name": "amqp-broker", "organization_unit_name": kind, "not_after": now + VALID}


def _names(hosts: Iterable[str]) -> list[str]:
    """Return the host names and addresses of the broker. Raise TlsError for an invalid host."""
    names = ["localhost", "127.0.0.1", "::1"]
    if _HOST_NAME.fullmatch(socket.gethostname()):
        names.append(socket.gethostname())
    for host in hosts:
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            if not _HOST_NAME.fullmatch(host):
                raise TlsError(f"'{host}' is not a valid host name for a certificate") from None
            names.append(host)
        else:
            if not address.is_unspecified:
                names.append(str(address))
    return list(dict.fromkeys(names))


def _is_valid(path: Path, now: datetime, hosts: Iterable[str] = (), user: str = "") -> bool:
    """Return True if the file has a certificate for these hosts and this user with enough validity left."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        return False
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc - VALID_MIN:
        return False
    if user:
        found = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        if [attribute.value for attribute in found] != [user[:COMMON_NAME_MAX]]:
            return False
    try:
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return not list(hosts)
    known = {str(name.value).lower() for name in alternative}
    return all(host.lower() in known for host in hosts)


def _write_pair(made: Any, certificate: Path, key: Path) -> None:
    _write(key, made.private_key_pem.bytes(), is_secret=True)
    _write(certificate, b"".join(pem.bytes() for pem in made.cert_chain_pems))


def _write(path: Path, content: bytes, *, is_secret: bool = False) -> None:
    """Replace a file in one step; secret files can only be read by their owner."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if is_secret else 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder against other brokers that start at the same moment."""
    if sys.platform == "win32":
        # A folder cannot be locked there.
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
