"""Properties of a client's certificate, in RabbitMQ's format (rabbit_cert_info.erl, rabbit_ssl.erl).

Certificates are dicts of the module ssl, which contain verified certificates only.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

# A distinguished name: a sequence of relative names, each with pairs of OpenSSL attribute name and value.
Name: TypeAlias = "tuple[tuple[tuple[str, str], ...], ...]"

# RabbitMQ's names of OpenSSL's attributes; attributes without a name in RabbitMQ have their OID.
ATTRIBUTES: Final = {
    "surname": "SN",
    "givenName": "GIVENNAME",
    "initials": "INITIALS",
    "generationQualifier": "GENERATIONQUALIFIER",
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "title": "TITLE",
    "countryName": "C",
    "serialNumber": "SERIALNUMBER",
    "pseudonym": "PSEUDONYM",
    "domainComponent": "DC",
    "emailAddress": "EMAILADDRESS",
    "userId": "UID",
    "streetAddress": "2.5.4.9",
    "dnQualifier": "2.5.4.46",
    "description": "2.5.4.13",
    "businessCategory": "2.5.4.15",
    "postalCode": "2.5.4.17",
    "name": "2.5.4.41",
    "organizationIdentifier": "2.5.4.97",
}
_ESCAPED: Final = frozenset(b'"+,;<>\\')


def distinguished_name(name: Name) -> str:
    """Format a name as in RFC 4514, last part first, with everything but printable ASCII escaped."""
    return ",".join("+".join(_attribute(kind, value) for kind, value in relative) for relative in reversed(name))


def _attribute(kind: str, value: str) -> str:
    octets = value.encode()
    shown = "".join(_escape(octet, index, len(octets)) for index, octet in enumerate(octets))
    return f"{ATTRIBUTES.get(kind, kind)}={shown}"


def _escape(octet: int, index: int, count: int) -> str:
    if (octet in b" #" and index == 0) or (octet == 32 and index == count - 1) or octet in _ESCAPED:
        return f"\\{chr(octet)}"
    return f"\\{octet:02X}" if octet < 32 or octet >= 126 else chr(octet)


def validity(certificate: Mapping[str, Any]) -> str:
    """Format the period of validity, such as `2026-11-20T09:34:26Z - 2026-12-01T09:34:26Z`."""
    times = (ssl.cert_time_to_seconds(certificate[name]) for name in ("notBefore", "notAfter"))
    return " - ".join(datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for time in times)


def login_name(certificate: Mapping[str, Any], login_from: str) -> str | None:
    """Return the user name of a certificate (`ssl_cert_login_from` in rabbitmq.conf); None if it has none.

    Among the alternative names it is the first DNS name, RabbitMQ's default.
    """
    subject: Name = certificate.get("subject", ())
    if login_from == "distinguished_name":
        return distinguished_name(subject)
    if login_from == "common_name":
        names = [value for relative in subject for kind, value in relative if kind == "commonName"]
        # RabbitMQ joins all of them.
        return ",".join(names) if names else None
    return next((value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"), None)
