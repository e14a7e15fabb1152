"""Where our answers may differ from RabbitMQ 3.10's, each with a name; one that does not occur fails the tests, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from compat.management_admin.asking import Said
from compat.management_admin.requests import HASH, Ask

Rule = Callable[[Ask, Said, Said], bool]


def _reason(said: Said) -> Any:
    return said.value.get("reason") if isinstance(said.value, dict) else None


def _crash(question: Ask, theirs: Said, ours: Said) -> bool:
    return theirs.status == 500 and ours.status in (400, 404) and bool(_reason(ours))


def _wrong_value(question: Ask, theirs: Said, ours: Said) -> bool:
    """What 3.10 takes, and makes something else of: octets cut off, names that nobody can use."""
    return theirs.status in (200, 201, 204) and ours.status == 400 and bool(_reason(ours))


def _hash(question: Ask, theirs: Said, ours: Said) -> bool:
    body = question.body
    return isinstance(body, dict) and body.get("password_hash") == HASH and (theirs.status, ours.status) == (204, 400)


def _vhost(question: Ask, theirs: Said, ours: Said) -> bool:
    """A vhost has more fields, and a change of some notes keeps the others."""
    if not question.path.startswith("vhosts") or theirs.status != 200 or ours.status != 200:
        return False
    if isinstance(theirs.value, list):
        return len(theirs.value) == len(ours.value) and all(map(_is_same_vhost, theirs.value, ours.value))
    return _is_same_vhost(theirs.value, ours.value)


def _is_same_vhost(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    is_same = all(theirs[key] == ours[key] for key in ("name", "tracing", "cluster_state"))
    return is_same and all(theirs[key] in (ours[key], "", []) for key in ("description", "tags"))


def _queue_type(question: Ask, theirs: Said, ours: Said) -> bool:
    """In 3.10 the vhost is there already, with a type of queues that does not exist."""
    return (question.path, theirs.status, ours.status) == ("vhosts/v4", 204, 201)


def _starts_with(*paths: str) -> Rule:
    return lambda question, theirs, ours: question.path.startswith(paths)


def _no_limits(question: Ask, theirs: Said, ours: Said) -> bool:
    """Limits of which all were lifted are no parameter any more."""
    if not question.path.startswith(("vhost-limits", "parameters")) or not isinstance(theirs.value, list):
        return False
    return bool([item for item in theirs.value if item["value"] != []] == ours.value)


def _apply_to(question: Ask, theirs: Said, ours: Said) -> bool:
    return "apply-to 'nothing' unrecognised" in str(_reason(theirs)) and "apply-to 'nothing' unrecognised" in str(
        _reason(ours)
    )


def _regexp(question: Ask, theirs: Said, ours: Said) -> bool:
    return theirs.status == ours.status == 400 and (_reason(theirs) or [""])[0] == (_reason(ours) or ["?"])[0] == (
        "invalid_regexp"
    )


def _method(question: Ask, theirs: Said, ours: Said) -> bool:
    return (theirs.status, theirs.value, ours.status) == (405, None, 405)


def _listeners(question: Ask, theirs: Said, ours: Said) -> bool:
    """Erlang's nodes listen for each other."""
    return theirs.status == ours.status == 503 and "listener" in question.path and _reason(theirs) == _reason(ours)


def _deaths(question: Ask, theirs: Said, ours: Said) -> bool:
    """A dead letter tells its last death, and a pulled message of a quorum queue its count only if it came back."""
    return question.path in ("queues/%2F/dead/get", "queues/%2F/qq/get") and theirs.status == ours.status == 200


RULES: Final[dict[str, Rule]] = {
    "what makes 3.10 answer 500 is refused, with the reason": _crash,
    "a password hash must be one of its algorithm": _hash,
    "what 3.10 takes and then has wrong is refused": _wrong_value,
    "a vhost tells more, and keeps what a change does not mention": _vhost,
    "a default type of queues must be one": _queue_type,
    "whoami tells that users are internal": _starts_with("whoami"),
    "passwords can be hashed over HTTP": _starts_with("auth/hash_password"),
    "OAuth is told in the words of RabbitMQ 4": _starts_with("auth"),
    "lifted limits are not listed": _no_limits,
    "policies may apply to a type of queues": _apply_to,
    "a pattern and what is wrong with it are text": _regexp,
    "a wrong method is told in JSON": _method,
    "listeners are others": _listeners,
    "a vhost's definitions tell more": _starts_with("definitions/v1"),
    "dead letters and counts are RabbitMQ 4's": _deaths,
}


def name_of(question: Ask, theirs: Said, ours: Said) -> str | None:
    """The first difference that explains why these two are not equal."""
    return next((name for name, applies in RULES.items() if applies(question, theirs, ours)), None)
