"""An authority and certificates as tests need them: valid ones, expired ones, encrypted keys.

issued = Issuer(folder).client("anna")
context = issued.context()
"""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

DAY = timedelta(days=1)
SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Issued:
    """A certificate and its key as files, and the authority that signed it."""

    certificate: Path
    key: Path
    authority: Path

    def context(self) -> ssl.SSLContext:
        """Return a client's context that shows this certificate and trusts its authority."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(self.certificate, self.key)
        return context


class Issuer:
    """An authority; the folder contains its files and those of the certificates that it signs."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        # Certificates of one name have the same validity whenever they are issued.
        self._now = datetime.now(UTC)
        self.authority = folder / "ca.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        builder = self._builder(self._name, self._key, None, None)
        certificate = (
            builder.add_extension(x509.BasicConstraints(True, None), critical=True)
            .add_extension(SIGNS_CERTIFICATES, critical=True)
            .sign(self._key, SHA256())
        )
        self.authority.write_bytes(certificate.public_bytes(Encoding.PEM))

    def context(self) -> ssl.SSLContext:
        """Return a client's context that trusts this authority and shows no certificate."""
        return ssl.create_default_context(cafile=str(self.authority))

    def server(self) -> Issued:
        return self._issue("server", ("localhost", "127.0.0.1"))

    def client(self, common_name: str, *hosts: str) -> Issued:
        return self._issue(common_name, hosts)

    def expired(self) -> Issued:
        """Issue a client certificate that expired yesterday."""
        return self._issue("expired", (), begin=self._now - 3 * DAY, end=self._now - DAY)

    def _issue(
        self, common_name: str, hosts: tuple[str, ...], begin: datetime | None = None, end: datetime | None = None
    ) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(common_name, "tests"), key, begin, end)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(map(_alternative, hosts)), critical=False)
        certificate = builder.sign(self._key, SHA256())
        issued = Issued(self.folder / f"{common_name}.pem", self.folder / f"{common_name}.key", self.authority)
        issued.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        _write_key(issued.key, key, NoEncryption())
        return issued

    def _builder(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, begin: datetime | None, end: datetime | None
    ) -> x509.CertificateBuilder:
        """Return a builder with key identifiers, which Python 3.13 and newer require."""
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin or self._now - DAY)
            .not_valid_after(end or self._now + 30 * DAY)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def _name(common_name: str, unit: str = "authorities") -> x509.Name:
    parts = {
        x509.NameOID.ORGANIZATION_NAME: "clients, brokers",
        x509.NameOID.ORGANIZATIONAL_UNIT_NAME: unit,
        x509.NameOID.COMMON_NAME: common_name,
    }
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in parts.items()])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def encrypted(key: Path, password: str) -> Path:
    """Return a copy of the key that is encrypted with a password."""
    loaded = load_pem_private_key(key.read_bytes(), None)
    assert isinstance(loaded, ec.EllipticCurvePrivateKey)
    copy = key.with_suffix(".encrypted")
    _write_key(copy, loaded, BestAvailableEncryption(password.encode()))
    return copy


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey, encryption: KeySerializationEncryption) -> None:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
