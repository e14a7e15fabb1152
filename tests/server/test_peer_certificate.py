"""Fields as RabbitMQ 3.10.8 shows them for the same certificates."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.server.peer_certificate import Name, distinguished_name, login_name, validity

ODD: Name = (
    (("countryName", "DE"),),
    (("stateOrProvinceName", "Bayern, Süd"),),
    (("localityName", "#München "),),
    (("streetAddress", "Weg 1+2"),),
    (("organizationName", 'A "quoted" \\ <x>;'),),
    (("organizationalUnitName", "unit 1"),),
    (("organizationalUnitName", "unit 2"),),
    (("domainComponent", "example"),),
    (("userId", "uid7"),),
    (("serialNumber", "42"),),
    (("title", "Dr"),),
    (("surname", "Sur"),),
    (("givenName", "Given"),),
    (("initials", "I"),),
    (("generationQualifier", "III"),),
    (("dnQualifier", "dnq"),),
    (("pseudonym", "pseudo"),),
    (("emailAddress", "anna@example.com"),),
    (("commonName", "anna"),),
    (("commonName", "second"),),
)
ODD_AS_TOLD = (
    "CN=second,CN=anna,EMAILADDRESS=anna@example.com,PSEUDONYM=pseudo,2.5.4.46=dnq,GENERATIONQUALIFIER=III,"
    "INITIALS=I,GIVENNAME=Given,SN=Sur,TITLE=Dr,SERIALNUMBER=42,UID=uid7,DC=example,OU=unit 2,OU=unit 1,"
    'O=A \\"quoted\\" \\\\ \\<x\\>\\;,2.5.4.9=Weg 1\\+2,L=\\#M\\C3\\BCnchen\\ ,ST=Bayern\\, S\\C3\\BCd,C=DE'
)
TWO_IN_ONE: Name = ((("commonName", "carl"), ("userId", "c1")), (("organizationName", "acme"),))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (ODD, ODD_AS_TOLD),
        (TWO_IN_ONE, "O=acme,CN=carl+UID=c1"),
        ((), ""),
        (((("commonName", " "),),), "CN=\\ "),
        (((("commonName", " a b "),),), "CN=\\ a b\\ "),
        (((("commonName", "a#b\t~"),),), "CN=a#b\\09\\7E"),
        (((("1.2.3.4", "x"),),), "1.2.3.4=x"),
    ],
    ids=["all attributes", "two in one", "none", "a space", "spaces", "signs", "unknown"],
)
def test_names_have_the_format_of_rabbitmq(name: Name, expected: str) -> None:
    assert distinguished_name(name) == expected


@pytest.mark.parametrize(
    ("login_from", "name"),
    [
        ("distinguished_name", ODD_AS_TOLD),
        ("common_name", "anna,second"),
        ("subject_alternative_name", "anna.example.com"),
        ("subject_alt_name", "anna.example.com"),
    ],
)
def test_the_login_name_comes_from_the_configured_field(login_from: str, name: str) -> None:
    alternative = (("email", "anna@example.com"), ("DNS", "anna.example.com"), ("DNS", "b.example.com"))
    assert login_name({"subject": ODD, "subjectAltName": alternative}, login_from) == name


@pytest.mark.parametrize(
    ("certificate", "login_from"),
    [
        ({"subject": ((("organizationName", "acme"),),)}, "common_name"),
        ({"subject": ODD}, "subject_alternative_name"),
        ({"subject": ODD, "subjectAltName": (("email", "anna@example.com"),)}, "subject_alternative_name"),
    ],
)
def test_a_certificate_without_the_field_has_no_login_name(certificate: dict[str, Any], login_from: str) -> None:
    assert login_name(certificate, login_from) is None


def test_times_of_validity_are_utc() -> None:
    certificate = {"notBefore": "Nov 20 09:34:26 2026 GMT", "notAfter": "Dec  1 09:34:26 2026 GMT"}
    assert validity(certificate) == "2026-11-20T09:34:26Z - 2026-12-01T09:34:26Z"
