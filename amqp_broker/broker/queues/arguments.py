"""The x-arguments of queues: their names and values, and the equivalence of two declarations.

Source: rabbit_amqqueue.erl (check_arguments, declare_args) and rabbit_misc.erl (assert_args_equivalence).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from amqp_broker.amqp import fields
from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.admin.policy_merging import interval_ms
from amqp_broker.settings.profiles import Profile

EXPIRES_MS_MAX: Final = 315_360_000_000
PRIORITY_MAX: Final = 255
OVERFLOWS: Final = ("drop-head", "reject-publish", "reject-publish-dlx")
QUEUE_MODES: Final = ("default", "lazy")
QUEUE_TYPES: Final = ("classic", "quorum", "stream")
LEADER_LOCATORS: Final = ("client-local", "balanced", "random", "least-leaders", "min-masters")
OFFSETS: Final = ("first", "last", "next")

# A validator returns what is wrong as an Erlang term, or None.
Validator = Callable[[Any, fields.Table], "str | None"]


def _integer(value: Any, _: fields.Table) -> str | None:
    return None if fields.is_integer(value) else f'"expected integer, got {fields.type_name(value)}"'


def _non_negative(value: Any, arguments: fields.Table) -> str | None:
    wrong = _integer(value, arguments)
    return wrong or (f"{{value_negative,{value}}}" if value < 0 else None)


def _positive(value: Any, arguments: fields.Table) -> str | None:
    return _non_negative(value, arguments) or ("{value_zero,0}" if value == 0 else None)


def _expires(value: Any, arguments: fields.Table) -> str | None:
    return _positive(value, arguments) or _not_too_large(value)


def _message_ttl(value: Any, arguments: fields.Table) -> str | None:
    return _non_negative(value, arguments) or _not_too_large(value)


def _not_too_large(value: int) -> str | None:
    return f"{{value_too_large,{value}}}" if value > EXPIRES_MS_MAX else None


def _max_priority(value: Any, arguments: fields.Table) -> str | None:
    wrong = _non_negative(value, arguments)
    return wrong or (f"{{max_value_exceeded,{value}}}" if value > PRIORITY_MAX else None)


def _string(value: Any, _: fields.Table) -> str | None:
    return None if isinstance(value, str) else f"{{unacceptable_type,{fields.type_name(value)}}}"


def _dead_letter_routing_key(value: Any, arguments: fields.Table) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if "x-dead-letter-exchange" in arguments else "routing_key_but_no_dlx_defined")


def _dead_letter_strategy(value: Any, arguments: fields.Table) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if value in ("at-most-once", "at-least-once") else "invalid_dlx_strategy")


def _overflow(value: Any, arguments: fields.Table) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if value in OVERFLOWS else "invalid_overflow")


def _queue_mode(value: Any, arguments: fields.Table) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if value in QUEUE_MODES else f"\"unsupported queue mode '{value}'\"")


def _queue_type(value: Any, arguments: fields.Table) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if value in QUEUE_TYPES else f"\"unsupported queue type '{value}'\"")


def _queue_version(value: Any, arguments: fields.Table) -> str | None:
    wrong = _non_negative(value, arguments)
    return wrong or (None if value in (1, 2) else f"\"unsupported queue version '{value}'\"")


def _queue_version_2(value: Any, arguments: fields.Table) -> str | None:
    wrong = _non_negative(value, arguments)
    return wrong or (None if value == 2 else f"\"unsupported queue version '{value}'\"")


def _leader_locator(value: Any, arguments: fields.Table) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if value in LEADER_LOCATORS else "invalid_queue_locator_arg")


def _leader_locator_of_3(value: Any, arguments: fields.Table) -> str | None:
    return "invalid_queue_locator_arg" if value == "min-masters" else _leader_locator(value, arguments)


def _bool(value: Any, _: fields.Table) -> str | None:
    return None if isinstance(value, bool) else f"{{unacceptable_type,{fields.type_name(value)}}}"


def _max_age(value: Any, arguments: fields.Table) -> str | None:
    wrong = _string(value, arguments)
    return wrong or (None if interval_ms(value) is not None else "invalid_max_age")


def _stream_offset(value: Any, _: fields.Table) -> str | None:
    is_offset = (
        fields.is_integer(value)
        or isinstance(value, fields.Timestamp)
        or (isinstance(value, bytes) and value.decode("latin-1") in OFFSETS)
        or (isinstance(value, str) and (value in OFFSETS or interval_ms(value) is not None))
    )
    return None if is_offset else f"{{invalid_stream_offset_arg,{{{fields.typed_term(value)}}}}}"


# In the order in which RabbitMQ checks them, after the type. A name that `_KNOWN_BY_QUEUES` lacks is never checked.
QUEUE_ARGUMENTS: Final[dict[str, Validator]] = {
    "x-expires": _expires,
    "x-message-ttl": _message_ttl,
    "x-dead-letter-exchange": _string,
    "x-dead-letter-routing-key": _dead_letter_routing_key,
    "x-dead-letter-strategy": _dead_letter_strategy,
    "x-max-length": _non_negative,
    "x-max-length-bytes": _non_negative,
    "x-max-in-memory-length": _non_negative,
    "x-max-in-memory-bytes": _non_negative,
    "x-max-priority": _max_priority,
    "x-overflow": _overflow,
    "x-queue-mode": _queue_mode,
    "x-queue-version": _queue_version,
    "x-single-active-consumer": _bool,
    "x-consumer-timeout": _non_negative,
    "x-consumer-disconnected-timeout": _non_negative,
    "x-quorum-initial-group-size": _positive,
    "x-max-age": _max_age,
    "x-stream-max-segment-size-bytes": _non_negative,
    "x-stream-filter-size-bytes": _non_negative,
    "x-initial-cluster-size": _positive,
    "x-queue-leader-locator": _leader_locator,
}
CONSUMER_ARGUMENTS: Final[dict[str, Validator]] = {
    "x-priority": _integer,
    "x-cancel-on-ha-failover": _bool,
    "x-consumer-timeout": _non_negative,
    "x-stream-offset": _stream_offset,
}

Release = tuple[int, int]
Known = Mapping[str, tuple[str, ...]]
_OLDEST: Final = (0, 0)
# The arguments that each type of queue knows, since which release: the capabilities of rabbit_classic_queue.erl,
# rabbit_quorum_queue.erl and rabbit_stream_queue.erl. Those that only other types know are refused, and known ones are
# compared, in this order, when a queue is declared again.
_KNOWN_BY_QUEUES: Final[dict[Release, Known]] = {
    _OLDEST: {
        "classic": (
            *("x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-length"),
            *("x-max-length-bytes", "x-max-priority", "x-overflow", "x-queue-mode", "x-queue-version"),
            *("x-single-active-consumer", "x-queue-type", "x-queue-master-locator"),
        ),
        "quorum": (
            *("x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy", "x-expires"),
            *("x-max-length", "x-max-length-bytes", "x-max-in-memory-length", "x-max-in-memory-bytes", "x-overflow"),
            *("x-single-active-consumer", "x-queue-type", "x-quorum-initial-group-size", "x-delivery-limit"),
            *("x-message-ttl", "x-queue-leader-locator"),
        ),
        "stream": (
            *("x-max-length-bytes", "x-queue-type", "x-max-age", "x-stream-max-segment-size-bytes"),
            *("x-initial-cluster-size", "x-queue-leader-locator"),
        ),
    },
    (4, 0): {"classic": ("x-queue-leader-locator",)},
    (4, 3): {
        "quorum": (
            *("x-consumer-disconnected-timeout", "x-consumer-timeout"),
            *("x-delayed-retry-type", "x-delayed-retry-min", "x-delayed-retry-max"),
        ),
        "stream": ("x-stream-filter-size-bytes",),
    },
}
_KNOWN_BY_CONSUMERS: Final[dict[Release, Known]] = {
    _OLDEST: {
        "classic": ("x-priority", "x-cancel-on-ha-failover"),
        "quorum": ("x-priority",),
        "stream": ("x-stream-offset", "x-stream-filter", "x-stream-match-unfiltered"),
    },
    (4, 3): {"quorum": ("x-consumer-timeout",)},
}
_KNOWN_UNTIL: Final[dict[str, Release]] = {"x-cancel-on-ha-failover": (4, 0)}


@cache
def known_by_queue(queue_type: str, release: Release) -> tuple[str, ...]:
    """Return the arguments that a queue of this type knows, in the order in which they are compared."""
    return _known(_KNOWN_BY_QUEUES, queue_type, release)


def _known(since: Mapping[Release, Known], queue_type: str, release: Release) -> tuple[str, ...]:
    names = (name for first, known in since.items() if first <= release for name in known.get(queue_type, ()))
    return tuple(name for name in names if name not in _KNOWN_UNTIL or release < _KNOWN_UNTIL[name])


@cache
def _foreign(queue_type: str, release: Release, *, is_consumer: bool) -> frozenset[str]:
    """Return the arguments that other types know, and this one does not."""
    since = _KNOWN_BY_CONSUMERS if is_consumer else _KNOWN_BY_QUEUES
    by_any = {name for each in QUEUE_TYPES for name in _known(since, each, release)}
    return frozenset(by_any.difference(_known(since, queue_type, release)))


def check_queue(arguments: fields.Table, profile: Profile, resource: str) -> None:
    """Raise PreconditionFailed for an argument that a new queue cannot have.

    First RabbitMQ looks at the type, then at the values of what the type knows, then, in the order given, at what only
    other types know.
    """
    is_untyped = profile.takes_empty_type and arguments.get("x-queue-type") == ""
    check({} if is_untyped else {"x-queue-type": _queue_type}, arguments, resource)
    queue_type = type_of(arguments)
    check(_validators(queue_type, profile), arguments, resource)
    check_type(_foreign(queue_type, profile.release, is_consumer=False), arguments, resource, queue_type)


@cache
def _validators(queue_type: str, profile: Profile) -> dict[str, Validator]:
    """Return the tests of what a queue of this type knows, except of the type."""
    known = known_by_queue(queue_type, profile.release)
    tests = {name: test for name, test in QUEUE_ARGUMENTS.items() if name in known}
    if not profile.has_queue_modes:
        tests.pop("x-queue-mode", None)
    if not profile.has_queue_version_1 and "x-queue-version" in tests:
        tests["x-queue-version"] = _queue_version_2
    if profile.release < (4, 0) and "x-queue-leader-locator" in tests:
        tests["x-queue-leader-locator"] = _leader_locator_of_3
    return tests


def check_consumer(arguments: fields.Table, profile: Profile, resource: str, queue_type: str) -> None:
    """Raise PreconditionFailed for an argument that a consumer of this type of queue cannot have."""
    known = _known(_KNOWN_BY_CONSUMERS, queue_type, profile.release)
    check({name: test for name, test in CONSUMER_ARGUMENTS.items() if name in known}, arguments, resource)
    check_type(_foreign(queue_type, profile.release, is_consumer=True), arguments, resource, queue_type)


def wrong_values(arguments: fields.Table, profile: Profile, *, is_consumer: bool) -> Iterator[tuple[str, str]]:
    """Yield name and mistake of each value that no queue, or no consumer, accepts, whatever its type is."""
    tests: dict[str, Validator] = {}
    if is_consumer:
        known = {name for kind in ("classic", "quorum") for name in _known(_KNOWN_BY_CONSUMERS, kind, profile.release)}
        tests = {name: CONSUMER_ARGUMENTS[name] for name in known}
    else:
        tests["x-queue-type"] = _queue_type
        for queue_type in QUEUE_TYPES:
            tests |= _validators(queue_type, profile)
    for name in sorted(arguments.keys() & tests.keys()):
        wrong = tests[name](arguments[name], arguments)
        if wrong is not None:
            yield name, wrong


def type_of(arguments: fields.Table) -> str:
    """The type of a queue with these arguments, which need not be valid."""
    queue_type = arguments.get("x-queue-type")
    return queue_type if queue_type in ("quorum", "stream") else "classic"


def check(known: dict[str, Validator], arguments: fields.Table, resource: str) -> None:
    """Raise PreconditionFailed for the first known argument with an invalid value; others may have any."""
    for name, validate in known.items():
        if name in arguments and (wrong := validate(arguments[name], arguments)) is not None:
            raise PreconditionFailed(f"invalid arg '{name}' for {resource}: {wrong}")


def check_type(foreign: Collection[str], arguments: fields.Table, resource: str, queue_type: str) -> None:
    """Raise PreconditionFailed for an argument that only other types of queues have, the first given."""
    for name in arguments:
        if name in foreign:
            raise PreconditionFailed(f"invalid arg '{name}' for {resource} of queue type rabbit_{queue_type}_queue")


def require_equal(resource: str, name: str, current: Any, received: Any) -> None:
    """Raise PreconditionFailed unless an attribute is declared again as it was."""
    if current != received:
        _fail(resource, name, _plain(received), _plain(current))


def require_equivalent(resource: str, names: Sequence[str], current: fields.Table, received: fields.Table) -> None:
    """Raise PreconditionFailed if a named argument differs; an int equals a long of the same value."""
    for name in names:
        if name not in current and name not in received:
            continue
        if name == "x-queue-type" and current.get(name, "classic") == received.get(name, "classic"):
            continue
        if name not in current:
            _fail(resource, name, _typed(received[name]), "none")
        elif name not in received:
            _fail(resource, name, "none", _typed(current[name]))
        elif not is_same(current[name], received[name]):
            _fail(resource, name, _plain(received[name]), _plain(current[name]))


def with_age_in_ms(arguments: fields.Table) -> fields.Table:
    """Return the arguments with a valid maximum age in milliseconds, as RabbitMQ 4.3 compares it."""
    age = arguments.get("x-max-age")
    age_ms = interval_ms(age) if isinstance(age, str) else None
    return arguments if age_ms is None else {**arguments, "x-max-age": str(age_ms)}


def is_same(one: Any, other: Any) -> bool:
    """Equality as RabbitMQ has it: integers of any width are one type, and no other type equals another."""
    if isinstance(one, (dict, list)) and isinstance(other, (dict, list)):
        # Python compares nested values by recursion.
        return fields.encode_table({"": one}) == fields.encode_table({"": other})
    return type_class(one) is type_class(other) and bool(one == other)


def type_class(value: Any) -> type:
    if fields.is_integer(value):
        return int
    return float if isinstance(value, float) else type(value)


def _fail(resource: str, name: str, received: str, current: str) -> None:
    raise PreconditionFailed(f"inequivalent arg '{name}' for {resource}: received {received} but current is {current}")


def _plain(value: Any) -> str:
    return "none" if value is None else f"'{_shown(value)}'"


def _typed(value: Any) -> str:
    return f"the value '{_shown(value)}' of type '{fields.type_name(value)}'"


def _shown(value: Any) -> str:
    """Return a value as Erlang prints it; strings and octets without quotes."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")
    if isinstance(value, float):
        digits, _, exponent = repr(value).partition("e")
        return f"{digits if '.' in digits else digits + '.0'}e{int(exponent)}" if exponent else digits
    return value if isinstance(value, str) else fields.erlang_term(value)
