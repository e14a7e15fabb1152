"""Logins over AMQP and HTTP: checking passwords, counting attempts, and slowing down guessing.

Each failed login costs the peer's address one second of debt. An address may owe up to 30 seconds, so 30 wrong
passwords in a row are answered as usual. After that, all its logins fail unchecked, even with the right password,
until a second has passed, which allows one guess per second. No login is delayed and no timer runs. A client that
fails once a second or less often (because it retries with an old password) never reaches the limit. Peers on this
machine are exempt. An IPv6 address counts as its /64 network, which is what one subscriber has.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from amqp_broker.amqp.errors import BadCredentials
from amqp_broker.broker.admin.access import User
from amqp_broker.broker.backends.login_chain import BackendAway, Link, log_in, own_user
from amqp_broker.broker.backends.questions import Answers

# RabbitMQ's names of the protocols in its counts of logins.
AMQP: Final = "amqp091"
HTTP: Final = "http"

FAILURE_COST_MS: Final = 1000
FAILURES_MAX: Final = 30
# The number of addresses to remember; the one whose last failure is oldest is forgotten first.
ADDRESSES_MAX: Final = 10_000


@dataclass
class Attempts:
    """The number of logins over a protocol since the start."""

    succeeded: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.succeeded + self.failed


class Logins:
    """Checks logins. `attempts` counts them by protocol; RabbitMQ omits protocols without any."""

    def __init__(self, users: Mapping[str, User], local_users: Collection[str], now: Callable[[], int]) -> None:
        """Check logins of `users`, of whom `local_users` may log in only from this machine; `now` is in ms."""
        self._users = users
        self.local_users = local_users
        # Empty where the broker's own users are all.
        self.chain: tuple[Link, ...] = ()
        self._now = now
        self.attempts: dict[str, Attempts] = {AMQP: Attempts(), HTTP: Attempts()}
        # By network: when its debt is paid (ms). The most recent failure comes last.
        self._debts: dict[str, int] = {}

    def check(
        self, name: str, password: bytes, peer_host: str, protocol: str = AMQP, answers: Answers | None = None
    ) -> User:
        """Return the user who logs in with a password; `answers` are those of remote backends so far.

        Raises Unanswered for another answer, and BadCredentials for an unknown name, a wrong password, a user who may
        log in only from this machine, and after too many failed logins from the same address.
        """
        return self._counted(name, password, peer_host, protocol, answers)

    def check_certificate(
        self, name: str, peer_host: str, protocol: str = AMQP, answers: Answers | None = None
    ) -> User:
        """Return the user named by a certificate that has been verified. Raises as `check` does."""
        return self._counted(name, None, peer_host, protocol, answers)

    def _counted(
        self, name: str, password: bytes | None, peer_host: str, protocol: str, answers: Answers | None
    ) -> User:
        # An administrator may have cleared the counts.
        attempts = self.attempts.setdefault(protocol, Attempts())
        try:
            user = self._check(name, password, peer_host, answers)
        except BadCredentials:
            attempts.failed += 1
            raise
        attempts.succeeded += 1
        return user

    def _check(self, name: str, password: bytes | None, peer_host: str, answers: Answers | None) -> User:
        is_local, now = is_loopback(peer_host), self._now()
        network = _network(peer_host)
        debt_until = self._debts.get(network, 0)
        if not is_local and debt_until - now > (FAILURES_MAX - 1) * FAILURE_COST_MS:
            raise BadCredentials(f"user '{name}' - too many failed logins from {peer_host}")
        try:
            if self.chain and answers is not None:
                user = log_in(self.chain, self._users, name, password, peer_host, answers)
            else:
                user = own_user(self._users, name, password)
        except BackendAway:
            raise
        except BadCredentials:
            if not is_local:
                self._debts.pop(network, None)
                if len(self._debts) >= ADDRESSES_MAX:
                    del self._debts[next(iter(self._debts))]
                self._debts[network] = max(debt_until, now) + FAILURE_COST_MS
            raise
        if not is_local and self._is_local_only(user):
            raise BadCredentials(f"user '{name}' can only connect via localhost", is_remote=True)
        return user

    def _is_local_only(self, user: User) -> bool:
        """Return whether the user may log in only from this machine, as guest, whose password is well known."""
        return user.name in self.local_users

    @property
    def are_open_to_all(self) -> bool:
        """True if anyone can log in from anywhere, as guest with its well-known password."""
        guest = self._users.get("guest")
        return guest is not None and not self._is_local_only(guest) and guest.accepts(b"guest")


def is_loopback(host: str) -> bool:
    """Return whether a peer is on this machine; anything but an internet address is a local socket."""
    address = _address(host)
    return address is None or address.is_loopback


def _network(host: str) -> str:
    address = _address(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an address; an IPv4 address mapped into IPv6 becomes IPv4."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
