from __future__ import annotations

import base64

import pytest

from amqp_broker.broker.admin.access import User
from amqp_broker.management.http.answers import Challenge, Refusal
from amqp_broker.management.http.auth import (
    ADMINISTRATOR,
    MANAGEMENT,
    MONITORING,
    POLICYMAKER,
    PUBLIC,
    has_tag,
    login,
)
from tests.peer import Lab


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("administrator", {MANAGEMENT, POLICYMAKER, MONITORING, ADMINISTRATOR}),
        ("monitoring", {MANAGEMENT, MONITORING}),
        ("policymaker", {MANAGEMENT, POLICYMAKER}),
        ("management", {MANAGEMENT}),
        ("impersonator", set()),
    ],
)
def test_a_tag_includes_others(name: str, allowed: set[str]) -> None:
    user = User("u", tags=(name,))
    assert {tag for tag in (MANAGEMENT, POLICYMAKER, MONITORING, ADMINISTRATOR) if has_tag(user, tag)} == allowed


def test_a_public_endpoint_needs_no_tag() -> None:
    assert has_tag(User("u"), PUBLIC)


def refused(authorization: str | None, version: str = "4.2") -> tuple[int, object, bool]:
    """Return status, reason, and whether there is a challenge, of the answer to a header of guest's."""
    with pytest.raises(Refusal) as found:
        login(Lab(compat=version).broker, authorization, MANAGEMENT, "127.0.0.1")
    return found.value.status, found.value.reason, isinstance(found.value, Challenge)


@pytest.mark.parametrize(
    "authorization",
    [
        *("", "Basic", "Basic ?", "Basic Z3Vlc3Q=", "Basic Z3Vlc3Q6é", "Basic Z3Vlc3Q6\udcff", "BasicZ3Vlc3Q6"),
        *(
            "Basic Z3Vlc3Q6Z3Vlc3Q= x",
            "Basic Z3Vlc3Q6Z3V=lc3Q",
            "Bearer ",
            "Bearer a b",
            "Digest",
            "other Z3Vlc3Q6Z3Vlc3Q=",
        ),
    ],
)
def test_a_header_that_cannot_be_read_is_a_wrong_request(authorization: str) -> None:
    """Seen at RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    assert refused(authorization) == (400, None, False)


def test_credentials_that_are_missing_or_of_digest_are_challenged() -> None:
    """Seen at RabbitMQ 3.10.8, 4.0.5 and 4.3.6."""
    assert refused(None) == refused('Digest username="guest", realm="x"') == (401, None, True)


@pytest.mark.parametrize("authorization", ["Bearer abc", "Basic " + base64.b64encode(b"guest:wrong").decode()])
def test_wrong_credentials_are_challenged_by_rabbitmq_3_alone(authorization: str) -> None:
    assert refused(authorization, "3.13") == (401, "Login failed", True)
    assert refused(authorization, "4.0") == (401, "Not_Authorized", False)


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC "])
def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    encoded = base64.b64encode(b"guest:guest").decode()
    assert login(Lab().broker, f"{scheme} {encoded}", MANAGEMENT, "127.0.0.1").name == "guest"
