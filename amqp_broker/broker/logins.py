"""Who logs in: names and passwords are checked here for AMQP and HTTP alike, counted, and guessing is slowed down.

How guessing is slowed down: each failure of a peer's address costs it a second. An address may be up to 30 seconds in
debt, so 30 wrong passwords in a row are answered like any other; then its logins fail unchecked, the right password's,
too, until a second has passed, which is one more guess a second. Nobody is made to wait, no timer runs, and whoever
fails once a second or less (a client that tries again and again with an old password) is never in debt. Peers on this
machine are not held back. An IPv6 address counts as its /64 network, which is what one subscriber has of them.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from amqp_broker.broker.access import User, hash_password
from amqp_broker.errors import BadCredentials

if TYPE_CHECKING:
    from amqp_broker.broker.broker import Broker

# What RabbitMQ calls them where it counts logins.
AMQP: Final = "amqp091"
HTTP: Final = "http"

FAILURE_COST_MS: Final = 1000
FAILURES_MAX: Final = 30
# Addresses that are remembered; the one that has failed longest ago is forgotten first.
ADDRESSES_MAX: Final = 10_000

# Stands in for whom we do not know, so that this takes as long as a wrong password.
_NOBODY: Final = User("", hash_password(b"nobody has this password", b"salt"))


@dataclass
class Attempts:
    """How many logins there were over a protocol since the start."""

    succeeded: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.succeeded + self.failed


class Logins:
    """Checks logins. `attempts` counts them by protocol; RabbitMQ does not show those without any."""

    def __init__(self) -> None:
        self.attempts: dict[str, Attempts] = {AMQP: Attempts(), HTTP: Attempts()}
        # By network, until when (ms) its failures are not forgiven; who failed last stands last.
        self._debts: dict[str, int] = {}

    def check(self, broker: Broker, name: str, password: bytes | None, peer_host: str, protocol: str) -> User:
        """The user of that name, if the password is his; None is for a name that is proved otherwise.

        Raises BadCredentials: nobody has that name, the password is another, the user may log in from this machine
        only, or too many logins from there have failed.
        """
        # They may have been reset meanwhile, to none at all.
        attempts = self.attempts.setdefault(protocol, Attempts())
        try:
            user = self._check(broker, name, password, peer_host)
        except BadCredentials:
            attempts.failed += 1
            raise
        attempts.succeeded += 1
        return user

    def _check(self, broker: Broker, name: str, password: bytes | None, peer_host: str) -> User:
        is_local, now = is_loopback(peer_host), broker.now
        network = _network(peer_host)
        debt_until = self._debts.get(network, 0)
        if not is_local and debt_until - now > (FAILURES_MAX - 1) * FAILURE_COST_MS:
            raise BadCredentials(f"user '{name}' - too many failed logins from {peer_host}")
        user = broker.users.get(name)
        fits = (user or _NOBODY).accepts(password) if password is not None else True
        if user is None or not fits:
            if not is_local:
                self._debts.pop(network, None)
                if len(self._debts) >= ADDRESSES_MAX:
                    del self._debts[next(iter(self._debts))]
                self._debts[network] = max(debt_until, now) + FAILURE_COST_MS
            raise BadCredentials(f"user '{name}' - invalid credentials")
        if not is_local and is_local_user(broker, user):
            raise BadCredentials(f"user '{name}' can only connect via localhost", is_remote=True)
        return user


def is_local_user(broker: Broker, user: User) -> bool:
    """Whether the user may log in from this machine only, as guest, whose password everybody knows."""
    return user.name in broker.config.local_users


def is_everybody(broker: Broker) -> bool:
    """Whether everybody can be guest: from everywhere, with the password that everybody knows."""
    guest = broker.users.get("guest")
    return guest is not None and not is_local_user(broker, guest) and guest.accepts(b"guest")


def is_loopback(host: str) -> bool:
    """Whether a peer is on this machine; what is no internet address is a socket of it."""
    address = _address(host)
    return address is None or address.is_loopback


def _network(host: str) -> str:
    address = _address(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address as it is meant: one of IPv4 that came in through IPv6 is one of IPv4."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
