"""The backends of logins, tried in order until one accepts.

Source: rabbit_access_control.erl, check_user_login. A setting names the backends as words: `http`, `internal`, or
`AUTHN|AUTHZ+AUTHZ` where one backend knows the users, and others their permissions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from amqp_broker.amqp.errors import BadCredentials
from amqp_broker.broker.admin.access import User, hash_password
from amqp_broker.broker.backends.questions import USER, Answers, Backend, Question
from amqp_broker.broker.backends.remote_user import RemoteUser

# Checked in place of an unknown user, so that the answer takes as long as for a wrong password.
UNKNOWN: Final = User("", hash_password(b"no password is this one", b"salt"))


class Link(NamedTuple):
    """One entry of the chain. None stands for the broker's own users."""

    authn: Backend | None
    authz: tuple[Backend | None, ...]


class BackendAway(BadCredentials):
    """A backend has given no answer: the credentials may be right."""


def chain_of(words: str, backends: Mapping[str, Backend]) -> tuple[Link, ...]:
    """Return the chain that a setting names; it is empty if the broker's own users are all."""
    links = []
    for word in words.split():
        authn, _, authz = word.partition("|")
        links.append(Link(backends.get(authn), tuple(backends.get(name) for name in (authz or authn).split("+"))))
    return tuple(links) if any(link != Link(None, (None,)) for link in links) else ()


def log_in(
    chain: Sequence[Link],
    users: Mapping[str, User],
    name: str,
    password: bytes | None,
    peer_host: str,
    answers: Answers,
) -> User:
    """Return the user whom the first backend of the chain accepts. Raises Unanswered, BadCredentials, BackendAway."""
    refusal = BadCredentials(f"No modules checked '{name}'")
    for link in chain:
        try:
            return _log_in(link, users, name, password, peer_host, answers)
        except BadCredentials as error:
            refusal = error
    raise refusal


def own_user(users: Mapping[str, User], name: str, password: bytes | None) -> User:
    """Return one of the broker's own users; with None for a password, a certificate has named it.

    Raises BadCredentials.
    """
    user = users.get(name)
    fits = (user or UNKNOWN).accepts(password) if password is not None else True
    if user is None or not fits:
        raise BadCredentials(f"user '{name}' - invalid credentials")
    return user


def _log_in(
    link: Link, users: Mapping[str, User], name: str, password: bytes | None, peer_host: str, answers: Answers
) -> User:
    if link.authn is None:
        own = own_user(users, name, password)
        if link.authz == (None,):
            return own
        tags = own.tags
    else:
        tags = _accepted(link.authn, "authenticating", name, password, answers)
    remote = [backend for backend in link.authz if backend is not None]
    for backend in remote:
        if backend is not link.authn:
            _accepted(backend, "authorizing", name, password, answers)
    is_by_own = None in link.authz
    if is_by_own and link.authn is not None:
        tags = (*tags, *(tag for tag in own_user(users, name, None).tags if tag not in tags))
    return RemoteUser(name, tags, remote, users if is_by_own else None, answers, peer_host)


def _accepted(backend: Backend, purpose: str, name: str, password: bytes | None, answers: Answers) -> tuple[str, ...]:
    """Return the tags of a user whom a backend accepts. Raises Unanswered, BadCredentials and BackendAway."""
    given = () if password is None else (("password", password),)
    answer = answers.of(backend, Question(USER, (("username", name), *given)))
    if answer.error:
        raise BackendAway(f"{backend.name} failed {purpose} {name}: {answer.error}")
    if not answer.is_allowed:
        raise BadCredentials("Denied by the backing HTTP service")
    return answer.tags
