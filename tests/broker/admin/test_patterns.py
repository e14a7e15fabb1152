from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import pytest
import regex

from amqp_broker.amqp.errors import AccessRefused, InvalidParameter
from amqp_broker.broker.admin import patterns
from amqp_broker.broker.admin.access import Permission, TopicPermission
from amqp_broker.broker.admin.policies import Policy
from tests.broker_parts import new_broker, new_exchange, new_queue

# Python's `re` takes very long for each of these.
EVIL = [
    ("^(a|aa)+$", "a" * 60 + "!"),
    ("^(a|a)*$", "a" * 60 + "!"),
    ("^(.*?,){30}P", "1,2,3,4,5,6,7,8,9,10," * 4),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 200),
]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Clear the cache of patterns."""
    patterns._compiled.cache_clear()
    patterns.warnings.clear()
    yield
    patterns.warnings.clear()


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (".*", "anything", True),
        ("", "anything", True),
        ("orders", "my-orders-2", True),
        ("^orders$", "orders2", False),
        ("^(?!amq\\.).*", "amq.topic", False),
        ("(?i)^ORDERS", "orders", True),
        ("^\\d+$", "12", True),
        ("^[[:alpha:]]+$", "abc", True),
        ("^a++b", "aab", True),
        ("^(?>a+)ab", "aab", False),
        ("\\h", "a\tb", True),
        ("a(?i)B$", "ab", True),
        ("a(?i)B$", "AB", False),
        ("^x{d", "x{d", True),
        ("^a{e<=1}b$", "a{e<=1}b", True),
        ("^a{e<=1}b$", "ab", False),
        ("^a{,3}$", "aaa", False),
        ("^{{3}$", "{{{", True),
        ("^[{]{d}$", "{{d}", True),
    ],
)
def test_a_pattern_matches_anywhere_in_a_text(pattern: str, text: str, expected: bool) -> None:
    """The expected results are those of Erlang's `re`, OTP 25."""
    assert patterns.matches(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [("^\\w$", "é", False), ("^.$", "é", False), ("^..$", "é", True), ("^é$", "é", True), ("^\\d$", "٣", False)],
)
def test_a_text_is_its_octets(pattern: str, text: str, expected: bool) -> None:
    """The expected results are those of Erlang's `re`, OTP 25."""
    assert patterns.matches(pattern, text) is expected


def test_a_name_that_is_not_utf_8_is_matched_by_its_octets() -> None:
    assert patterns.matches("^a.$", b"a\xff".decode("utf-8", "surrogateescape"))


def test_the_empty_pattern_of_a_permission_permits_the_empty_text_only() -> None:
    assert patterns.permits("", "")
    assert not patterns.permits("", "a")
    assert patterns.permits("a", "a")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("a[", '{"missing terminating ] for character class",2}'),
        ("a(b", '{"missing )",3}'),
        ("é{d}{d}(b", '{"missing )",10}'),
        ("a)", '{"unmatched parentheses",1}'),
        ("*a", '{"nothing to repeat",0}'),
        ("a**", '{"nothing to repeat",2}'),
        ("a\\", '{"\\\\ at end of pattern",2}'),
        ("a" * 1025, "pattern_too_long"),
        ("(" * 400 + ")" * 400, '{"parentheses are too deeply nested",800}'),
    ],
)
def test_an_invalid_regular_expression_has_rabbitmqs_reason(pattern: str, problem: str) -> None:
    """The texts are those of Erlang's `re`, OTP 25; the length limit is that of rabbit_re.erl, 4.3."""
    assert patterns.problem_of(pattern) == problem


def test_an_invalid_regular_expression_is_refused_with_a_reason() -> None:
    with pytest.raises(InvalidParameter) as caught:
        patterns.check("a[")
    assert str(caught.value) == (
        "regular expression 'a[' is invalid: {\"missing terminating ] for character class\",2}"
    )
    patterns.check("a" * 1024)


def test_a_pattern_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="7 is no regular expression"):
        patterns.check(7)


def test_an_invalid_pattern_matches_nothing() -> None:
    assert not patterns.matches("[", "[")


# Patterns that could stall the broker


@pytest.mark.parametrize(("pattern", "text"), EVIL)
def test_a_match_that_takes_too_long_counts_as_no_match(pattern: str, text: str) -> None:
    patterns.check(pattern)
    started = process_time()
    assert not patterns.matches(pattern, text)
    # Ten times both attempts: the machine may be busy.
    assert process_time() - started < 20 * patterns.TIME_MAX_S


def test_a_slow_pattern_is_logged_once() -> None:
    pattern, text = EVIL[0]
    for _ in range(3):
        assert not patterns.matches(pattern, text)
    assert list(patterns.warnings) == [
        "regular expression '^(a|aa)+$' took more than 20 ms to match a name; "
        "names for which it takes too long do not match"
    ]


def test_a_slow_pattern_is_given_up_and_does_not_delay_ten_thousand_names() -> None:
    pattern, text = EVIL[0]
    started = process_time()
    for number in range(10_000):
        assert not patterns.matches(pattern, text + str(number))
    # Each would take 4 ms, and all together 40 s.
    assert process_time() - started < 10 * patterns.TIME_MAX_ALL_S
    assert patterns.is_given_up(pattern)
    assert not patterns.matches(pattern, "aaaa")
    assert patterns.warnings[-1] == (
        "regular expression '^(a|aa)+$' takes too long for many names, and matches no name any more"
    )


def test_a_few_slow_names_among_many_do_not_add_up() -> None:
    pattern, text = EVIL[0]
    for number in range(30):
        assert not patterns.matches(pattern, text + str(number))
        assert all(patterns.matches(pattern, "a" * (1 + name % 9)) for name in range(1000))
    assert not patterns.is_given_up(pattern)


class StandsStillOnce:
    """An expression whose first match takes too long."""

    def __init__(self, expression: regex.Pattern[bytes]) -> None:
        self._expression = expression
        self._stands_still = True

    def search(self, octets: bytes, timeout: float) -> regex.Match[bytes] | None:
        if self._stands_still:
            self._stands_still = False
            raise TimeoutError
        return self._expression.search(octets, timeout=timeout)


def test_a_match_during_which_the_machine_stands_still_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = patterns._compiled("^a")
    assert compiled.expression is not None
    monkeypatch.setattr(compiled, "expression", StandsStillOnce(compiled.expression))
    assert patterns.matches("^a", "ab")
    assert not patterns.is_slow("^a")
    assert not patterns.warnings


def test_a_slow_pattern_still_matches_names_that_take_little_time() -> None:
    pattern, text = EVIL[0]
    patterns.matches(pattern, text)
    assert patterns.matches(pattern, "aaaa")


@pytest.mark.parametrize(
    "pattern",
    [
        "(a{1,1000}){1,1000}",
        "a{99999999}",
        "a{1,99999999}",
        "(?:a{1000}b){1000}",
        "(((a{20}){20}){20}){20}",
        # Patterns with unclear ends of sets or comments.
        "(?:[)]a{1000}){1000}",
        "(?:\\(a{1000}){1000}",
        "(?:[[:alpha:])]a{1000}){1000}",
        "(?#[)a{99999999}(?#])",
        "(?x)#[\na{99999999}#]",
        "(?V1)(?:[[a])]b{1000}){1000}",
    ],
)
def test_a_pattern_with_huge_repeats_is_refused_before_it_is_compiled(pattern: str) -> None:
    started = process_time()
    with pytest.raises(InvalidParameter, match="regular expression is too large"):
        patterns.check(pattern)
    assert process_time() - started < 0.1
    assert not patterns.matches(pattern, "a" * 255)


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}$" * 2,
        "^([0-9]{1,3}\\.){3}[0-9]{1,3}$" * 9,
        "a{5000}",
        "((a?){100}){100}",
        "^order#[0-9]{1,9}$",
    ],
)
def test_usual_repeats_are_not_too_large(pattern: str) -> None:
    patterns.check(pattern)


def test_compiled_patterns_are_cached_up_to_a_limit() -> None:
    for number in range(patterns.COMPILED_MAX + 10):
        patterns.matches(f"a{number}", "a")
    kept = patterns._compiled.cache_info()
    assert kept.currsize == kept.maxsize == patterns.COMPILED_MAX
    assert kept.misses == patterns.COMPILED_MAX + 10


# Uses of patterns


def test_a_policy_with_an_evil_pattern_delays_nothing_and_applies_to_nothing() -> None:
    pattern, name = EVIL[0]
    vhost = new_broker().vhosts["/"]
    queue, exchange = new_queue(vhost, name), new_exchange(vhost, name)
    started = process_time()
    vhost.policies.set(Policy("p", pattern, {"max-length": 1}))
    vhost.operator_policies.set(Policy("p", pattern, {"max-length": 1}))
    assert process_time() - started < 20 * patterns.TIME_MAX_S
    assert (queue.policy, queue.operator_policy, exchange.policy) == (None, None, None)


def test_a_policy_whose_pattern_takes_too_long_for_many_names_is_refused() -> None:
    pattern, name = EVIL[0]
    vhost = new_broker().vhosts["/"]
    for number in range(100):
        new_queue(vhost, f"{name}{number}")
    with pytest.raises(InvalidParameter, match="invalid: regular expression takes too long"):
        vhost.policies.set(Policy("p", pattern, {"max-length": 1}))
    assert len(vhost.policies) == 0


def test_a_permission_with_an_evil_pattern_denies_names_that_take_too_long() -> None:
    pattern, name = EVIL[0]
    broker = new_broker()
    guest = broker.users["guest"]
    broker.users.set_permission(guest, "/", Permission(pattern, pattern, pattern))
    for action in ("configure", "write", "read"):
        with pytest.raises(AccessRefused):
            guest.require(action, "/", "queue", name)
    guest.require("read", "/", "queue", "aaa")
    assert not TopicPermission(pattern, pattern).allows("write", name, "guest", "/")


def test_variables_of_topic_permissions_are_not_patterns() -> None:
    """The name of a user must not widen permissions: rabbit_re.erl (escape, newer than 4.3.0)."""
    permission = TopicPermission(write="^{username}-{vhost}$")
    assert permission.allows("write", "a.b-/", "a.b", "/")
    assert not permission.allows("write", "axb-/", "a.b", "/")
    assert not permission.allows("write", "anything-/", ".*", "/")
