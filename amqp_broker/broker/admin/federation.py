"""Runtime parameters of federation: validated like RabbitMQ's, stored, and without effect.

Source: rabbit_federation_parameters.erl, rabbit_parameter_validation.erl.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import InvalidParameter

# Returns the error of a value; empty if it is valid.
Check: TypeAlias = Callable[[str, Any], str]

SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


def _wrong(key: str, expected: str, value: Any) -> str:
    return f"{key} should be {expected}, actually was {fields.json_term(value)}"


def _text(key: str, value: Any) -> str:
    return "" if isinstance(value, str) else f"{key} should be binary, actually was {fields.json_term(value)}"


def _number(key: str, value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "" if is_number else _wrong(key, "a number", value)


def _boolean(key: str, value: Any) -> str:
    return "" if isinstance(value, bool) else _wrong(key, "boolean", value)


def _one_of(*words: str) -> Check:
    allowed = f"one of [{','.join(fields.json_term(word) for word in words)}]"
    return lambda key, value: "" if value in words else _wrong(key, allowed, value)


def _uri(key: str, value: Any) -> str:
    if isinstance(value, str):
        problem = f'"{value}" not a valid URI: {{{{unable_to_parse_uri,no_scheme}},"{value}"}}'
        return "" if SCHEME.match(value) else problem
    if not isinstance(value, list):
        return _wrong(key, "list", value)
    return next((error for item in value if (error := _uri(key, item))), "")


_SHARED: Final[dict[str, Check]] = {
    "exchange": _text,
    "queue": _text,
    "consumer-tag": _text,
    "prefetch-count": _number,
    "reconnect-delay": _number,
    "max-hops": _number,
    "expires": _number,
    "message-ttl": _number,
    "trust-user-id": _boolean,
    "ack-mode": _one_of("no-ack", "on-publish", "on-confirm"),
    "resource-cleanup-mode": _one_of("default", "never"),
    "queue-type": _one_of("classic", "quorum"),
    "bind-nowait": _boolean,
    "channel-use-mode": _one_of("multiple", "single"),
}


def check_upstream(name: str, value: Any) -> None:
    """Raise InvalidParameter for an invalid upstream."""
    _check(name, value, {"uri": _uri, **_SHARED}, "uri")


def check_upstream_set(name: str, value: Any) -> None:
    """Raise InvalidParameter for an invalid set of upstreams; an object is none, and accepted."""
    for item in value if isinstance(value, list) else ():
        _check(name, item, {"upstream": _text, **_SHARED}, "upstream")


def check_setting(name: str, value: Any) -> None:
    """Raise InvalidParameter for an unknown or invalid setting."""
    if name not in ("local-nodename", "local-username"):
        raise InvalidParameter(f"name not recognised: {fields.json_term(name)}")
    if problem := _text(name, value):
        raise InvalidParameter(problem)


def _check(name: str, value: Any, checks: Mapping[str, Check], mandatory: str) -> None:
    """Raise InvalidParameter with all problems of an object, in RabbitMQ's order."""
    if not isinstance(value, Mapping):
        raise InvalidParameter(f"value of {name} must be a dictionary: {fields.json_term(value)}")
    unknown = [f"{{{fields.json_term(key)},{fields.json_term(value[key])}}}" for key in value if key not in checks]
    problems = [f"Unrecognised terms [{','.join(unknown)}] in {name}"] if unknown else []
    problems += [check(key, value[key]) for key, check in sorted(checks.items()) if key in value]
    if mandatory not in value:
        problems.append(f'Key "{mandatory}" not found in {name}')
    if found := [problem for problem in problems if problem]:
        raise InvalidParameter("\n".join(found))
