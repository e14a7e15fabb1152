"""Logins by one backend after another."""

from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import BadCredentials
from amqp_broker.broker.admin.access import User, hash_password
from amqp_broker.broker.backends.login_chain import BackendAway, Link, chain_of, log_in
from amqp_broker.broker.backends.questions import Answer, Answers
from tests.broker.backends.scripted import AWAY, DENIED, ScriptedBackend, answered

USERS = {"anna": User("anna", hash_password(b"secret", b"salt"), ("policymaker",))}
ALLOWED = Answer(True, ("management",))


def login(chain: tuple[Link, ...], name: str = "anna", password: bytes | None = b"secret") -> User:
    answers = Answers()
    user = answered(lambda: log_in(chain, USERS, name, password, "192.0.2.1", answers))
    assert isinstance(user, User)
    return user


def test_words_name_a_chain() -> None:
    http, cached = ScriptedBackend(name="http"), ScriptedBackend(name="cached")
    backends = {"http": http, "cached": cached}
    assert chain_of("", backends) == chain_of("internal", backends) == ()
    assert chain_of("http internal", backends) == (Link(http, (http,)), Link(None, (None,)))
    assert chain_of("internal|http+internal cached|http", backends) == (
        Link(None, (http, None)),
        Link(cached, (http,)),
    )


def test_the_first_backend_that_accepts_decides() -> None:
    denies, allows = ScriptedBackend(DENIED, "one"), ScriptedBackend(ALLOWED, "two")
    chain = (Link(denies, (denies,)), Link(allows, (allows,)), Link(None, (None,)))
    assert login(chain, "berta").tags == ("management",)
    assert login((chain[0], chain[2])) is USERS["anna"]
    with pytest.raises(BadCredentials, match="user 'berta' - invalid credentials"):
        login((chain[0], chain[2]), "berta")
    with pytest.raises(BadCredentials, match="Denied by the backing HTTP service"):
        login(chain[:1])


def test_a_backend_that_is_away_is_named() -> None:
    away = ScriptedBackend(AWAY, "rabbit_auth_backend_http")
    with pytest.raises(BackendAway, match="rabbit_auth_backend_http failed authenticating anna: timeout"):
        login((Link(away, (away,)),))
    with pytest.raises(BackendAway, match="rabbit_auth_backend_http failed authorizing anna: timeout"):
        login((Link(None, (away,)),))
    assert login((Link(away, (away,)), Link(None, (None,)))) is USERS["anna"]


def test_tags_are_those_of_both() -> None:
    allows = ScriptedBackend(ALLOWED)
    assert login((Link(allows, (None,)),)).tags == ("management", "policymaker")
    assert login((Link(None, (allows,)),)).tags == ("policymaker",)
    with pytest.raises(BadCredentials):
        login((Link(allows, (None,)),), "berta")


def test_a_certificate_has_no_password() -> None:
    allows = ScriptedBackend(ALLOWED)
    login((Link(allows, (allows,)),), "berta", None)
    assert allows.asked[0].parameters == (("username", "berta"),)
