from __future__ import annotations

import base64

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
    with pytest.raises(Refusal, match="Not_Authorized"):
        login(Lab().broker, f"Basic {credentials}", MANAGEMENT, "127.0.0.1")


@pytest.mark.parametrize(("version", "reason"), [("3.13", "Login failed"), ("4.0", "Not_Authorized")])
def test_a_wrong_password_is_refused_in_the_words_of_the_version(version: str, reason: str) -> None:
    wrong = base64.b64encode(b"guest:wrong").decode()
    with pytest.raises(Refusal) as refused:
        login(Lab(compat=version).broker, f"Basic {wrong}", MANAGEMENT, "127.0.0.1")
    assert (refused.value.status, refused.value.reason) == (401, reason)
