"""Logins are checked and counted, and guessing is slowed down."""

from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import BadCredentials
from amqp_broker.broker import logins
from amqp_broker.broker.admin import access
from amqp_broker.broker.admin.access import SHA256, hash_password
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.logins import ADDRESSES_MAX, FAILURE_COST_MS, FAILURES_MAX, HTTP, Attempts
from tests.broker_parts import new_broker

LOCAL, REMOTE = "127.0.0.1", "192.0.2.1"


@pytest.fixture
def broker() -> Broker:
    broker = new_broker(now=1_700_000_000_000)
    broker.users.add("anna", "secret")
    return broker


def refusal(broker: Broker, name: str, password: str, host: str = REMOTE) -> str:
    with pytest.raises(BadCredentials) as caught:
        broker.logins.check(name, password.encode(), host)
    return str(caught.value)


def fail(broker: Broker, count: int, host: str = REMOTE) -> None:
    for _ in range(count):
        assert refusal(broker, "anna", "wrong", host) == "user 'anna' - invalid credentials"


# Checking


def test_a_user_logs_in_with_the_right_password(broker: Broker) -> None:
    assert broker.logins.check("anna", b"secret", REMOTE) is broker.users["anna"]


@pytest.mark.parametrize(("name", "password"), [("anna", "wrong"), ("anna", ""), ("nobody", "secret"), ("", "")])
def test_unknown_users_and_wrong_passwords_are_refused(broker: Broker, name: str, password: str) -> None:
    assert refusal(broker, name, password) == f"user '{name}' - invalid credentials"


def test_the_password_of_unknown_users_is_refused(broker: Broker) -> None:
    refusal(broker, "nobody", "nobody has this password")


def test_each_refusal_costs_one_hash(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashing takes most of the time, so the duration does not show which users exist."""
    broker.users.set_password_hash(broker.users.add("no password", "x"), b"", SHA256)
    hashed: list[bytes] = []

    def count(password: bytes, salt: bytes, algorithm: str) -> bytes:
        hashed.append(password)
        return hash_password(password, salt, algorithm)

    monkeypatch.setattr(access, "hash_password", count)
    for name in ("anna", "nobody", "no password"):
        hashed.clear()
        refusal(broker, name, "wrong", LOCAL)
        assert hashed == [b"wrong"]


def test_guest_is_refused_from_other_machines_even_with_the_right_password(broker: Broker) -> None:
    assert broker.logins.check("guest", b"guest", LOCAL).name == "guest"
    with pytest.raises(BadCredentials, match="user 'guest' can only connect via localhost") as caught:
        broker.logins.check("guest", b"guest", REMOTE)
    assert caught.value.is_remote
    with pytest.raises(BadCredentials, match="invalid credentials") as caught:
        broker.logins.check("guest", b"wrong", REMOTE)
    assert not caught.value.is_remote


def test_guest_may_log_in_from_other_machines_if_that_is_allowed() -> None:
    assert new_broker(remote_guest=True).logins.check("guest", b"guest", REMOTE).name == "guest"


def test_a_certificate_replaces_the_password_but_not_the_user(broker: Broker) -> None:
    assert broker.logins.check_certificate("anna", REMOTE).name == "anna"
    for name in ("guest", "CN=nobody"):
        with pytest.raises(BadCredentials):
            broker.logins.check_certificate(name, REMOTE)


# Counting


def test_logins_are_counted_by_protocol(broker: Broker) -> None:
    broker.logins.check("anna", b"secret", REMOTE)
    broker.logins.check_certificate("anna", REMOTE)
    fail(broker, 2)
    broker.logins.check("anna", b"secret", REMOTE, HTTP)
    assert broker.logins.attempts == {"amqp091": Attempts(succeeded=2, failed=2), "http": Attempts(succeeded=1)}


# Guessing


def test_after_too_many_failures_an_address_is_refused_even_with_the_right_password(broker: Broker) -> None:
    fail(broker, FAILURES_MAX)
    assert refusal(broker, "anna", "secret") == f"user 'anna' - too many failed logins from {REMOTE}"
    broker.now += FAILURE_COST_MS
    assert broker.logins.check("anna", b"secret", REMOTE).name == "anna"


def test_after_too_many_failures_one_attempt_per_second_is_checked(broker: Broker) -> None:
    fail(broker, FAILURES_MAX)
    for _ in range(5):
        broker.now += FAILURE_COST_MS - 1
        assert "too many" in refusal(broker, "anna", "wrong")
        broker.now += 1
        fail(broker, 1)


def test_refusals_without_a_check_do_not_prolong_the_wait(broker: Broker) -> None:
    fail(broker, FAILURES_MAX)
    for _ in range(100):
        refusal(broker, "anna", "secret")
    broker.now += FAILURE_COST_MS
    broker.logins.check("anna", b"secret", REMOTE)


def test_a_client_that_fails_once_a_second_does_not_lock_out_others(broker: Broker) -> None:
    for _ in range(10 * FAILURES_MAX):
        fail(broker, 1)
        broker.now += FAILURE_COST_MS
    broker.logins.check("anna", b"secret", REMOTE)


def test_other_addresses_are_not_refused(broker: Broker) -> None:
    fail(broker, FAILURES_MAX)
    assert broker.logins.check("anna", b"secret", "192.0.2.2").name == "anna"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "unix"])
def test_peers_on_this_machine_are_never_refused_unchecked(broker: Broker, host: str) -> None:
    fail(broker, 3 * FAILURES_MAX, host)
    broker.logins.check("anna", b"secret", host)


def test_a_network_of_ipv6_addresses_counts_as_one(broker: Broker) -> None:
    for number in range(FAILURES_MAX):
        fail(broker, 1, f"2001:db8::{number:x}")
    assert "too many" in refusal(broker, "anna", "secret", "2001:db8::ffff:ffff:ffff:ffff")
    broker.logins.check("anna", b"secret", "2001:db8:0:1::1")


def test_an_ipv4_address_is_the_same_through_ipv6(broker: Broker) -> None:
    fail(broker, FAILURES_MAX, f"::ffff:{REMOTE}")
    assert "too many" in refusal(broker, "anna", "secret")


def test_a_limited_number_of_addresses_is_remembered_and_the_oldest_is_forgotten(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ADDRESSES_MAX == 10_000
    monkeypatch.setattr(logins, "ADDRESSES_MAX", 3)
    fail(broker, FAILURES_MAX, "192.0.2.1")
    fail(broker, 1, "192.0.2.2")
    fail(broker, 1, "192.0.2.3")
    assert "too many" in refusal(broker, "anna", "wrong", "192.0.2.1")
    fail(broker, 1, "192.0.2.4")
    broker.logins.check("anna", b"secret", "192.0.2.1")
    assert list(broker.logins._debts) == ["192.0.2.2", "192.0.2.3", "192.0.2.4"]


def test_successful_logins_do_not_count_as_failures(broker: Broker) -> None:
    for number in range(100):
        broker.logins.check("anna", b"secret", f"192.0.2.{number}")
    assert broker.logins._debts == {}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "unix socket", ""])
def test_peers_on_this_machine_are_loopback(host: str) -> None:
    assert logins.is_loopback(host)


@pytest.mark.parametrize("host", ["192.0.2.1", "::ffff:192.0.2.1", "fe80::1%eth0", "2001:db8::1", "0.0.0.0", "::"])
def test_other_peers_are_not_loopback(host: str) -> None:
    assert not logins.is_loopback(host)
