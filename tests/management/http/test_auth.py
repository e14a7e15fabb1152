from __future__ import annotations

import pytest

from amqp_broker.broker.admin.access import User
from amqp_broker.management.http.answers import Refusal
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


@pytest.mark.parametrize("credentials", ["", "?", "Z3Vlc3Q=", "Z3Vlc3Q6é", "Z3Vlc3Q6\udcff"])
def test_credentials_that_are_not_base64_of_a_name_and_a_password_are_refused(credentials: str) -> None:
    with pytest.raises(Refusal, match="Login failed"):
        login(Lab().broker, f"Basic {credentials}", MANAGEMENT, "127.0.0.1")
