from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import pytest

from amqp_broker.broker import patterns
from amqp_broker.broker.access import Permission, TopicPermission
from amqp_broker.broker.policies import Policy
from amqp_broker.errors import AccessRefused, InvalidParameter
from tests.taker import new_broker, new_exchange, new_queue

# With each of these texts Python's `re` is busy for longer than anybody waited.
EVIL = [
    ("^(a|aa)+$", "a" * 60 + "!"),
    ("^(a|a)*$", "a" * 60 + "!"),
    ("^(.*?,){30}P", "1,2,3,4,5,6,7,8,9,10," * 4),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 200),
]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing is known of any pattern."""
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
    ],
)
def test_a_pattern_matches_anywhere_in_a_text(pattern: str, text: str, expected: bool) -> None:
    """As Erlang's `re` of OTP 25 answered for the same."""
    assert patterns.matches(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [("^\\w$", "é", False), ("^.$", "é", False), ("^..$", "é", True), ("^é$", "é", True), ("^\\d$", "٣", False)],
)
def test_a_text_is_its_octets(pattern: str, text: str, expected: bool) -> None:
    """As Erlang's `re` of OTP 25 answered for the same."""
    assert patterns.matches(pattern, text) is expected


def test_a_name_that_is_no_utf_8_has_octets_too() -> None:
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
        ("a)", '{"unmatched parentheses",1}'),
        ("*a", '{"nothing to repeat",0}'),
        ("a**", '{"nothing to repeat",2}'),
        ("a\\", '{"\\\\ at end of pattern",2}'),
        ("a" * 1025, "pattern_too_long"),
        ("(" * 400 + ")" * 400, '{"parentheses are too deeply nested",800}'),
    ],
)
def test_what_is_no_regular_expression_has_the_reason_that_rabbitmq_prints(pattern: str, problem: str) -> None:
    """The texts of Erlang's `re`, OTP 25; the length of rabbit_re.erl, 4.3."""
    assert patterns.problem_of(pattern) == problem


def test_what_is_no_regular_expression_is_refused_with_a_reason() -> None:
    with pytest.raises(InvalidParameter) as caught:
        patterns.check("a[")
    assert str(caught.value) == (
        "regular expression 'a[' is invalid: {\"missing terminating ] for character class\",2}"
    )
    patterns.check("a" * 1024)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="7 is no regular expression"):
        patterns.check(7)


def test_a_broken_pattern_matches_nothing() -> None:
    assert not patterns.matches("[", "[")


# Patterns that would hold up the broker


@pytest.mark.parametrize(("pattern", "text"), EVIL)
def test_a_match_that_takes_too_long_is_none(pattern: str, text: str) -> None:
    patterns.check(pattern)
    started = process_time()
    assert not patterns.matches(pattern, text)
    # Ten times the limit: the machine may be busy.
    assert process_time() - started < 10 * patterns.TIME_MAX_S


def test_a_pattern_that_took_too_long_is_told_of_once() -> None:
    pattern, text = EVIL[0]
    for _ in range(3):
        assert not patterns.matches(pattern, text)
    assert list(patterns.warnings) == [
        "regular expression '^(a|aa)+$' took more than 20 ms to match a name; "
        "what it takes too long for, it does not match"
    ]


def test_a_pattern_that_took_too_long_may_not_do_so_for_a_hundred_names() -> None:
    pattern, text = EVIL[0]
    patterns.matches(pattern, text)
    started = process_time()
    for number in range(100):
        assert not patterns.matches(pattern, text + str(number))
    assert process_time() - started < 100 * patterns.TIME_MAX_S


def test_a_pattern_that_took_too_long_still_matches_what_it_is_quick_with() -> None:
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
        # Where it is not plain what is a pattern and what a set or a comment.
        "(?:[)]a{1000}){1000}",
        "(?:\\(a{1000}){1000}",
        "(?:[[:alpha:])]a{1000}){1000}",
        "(?#[)a{99999999}(?#])",
        "(?x)#[\na{99999999}#]",
        "(?V1)(?:[[a])]b{1000}){1000}",
    ],
)
def test_a_pattern_that_is_huge_when_written_out_is_refused_before_it_is_compiled(pattern: str) -> None:
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
def test_what_people_count_in_patterns_is_not_too_large(pattern: str) -> None:
    patterns.check(pattern)


def test_compiled_patterns_are_kept_but_not_all_of_them() -> None:
    for number in range(patterns.COMPILED_MAX + 10):
        patterns.matches(f"a{number}", "a")
    kept = patterns._compiled.cache_info()
    assert kept.currsize == kept.maxsize == patterns.COMPILED_MAX
    assert kept.misses == patterns.COMPILED_MAX + 10


# Everywhere that users' patterns count


def test_a_policy_with_an_evil_pattern_holds_nothing_up_and_applies_to_nothing() -> None:
    pattern, name = EVIL[0]
    vhost = new_broker().vhosts["/"]
    queue, exchange = new_queue(vhost, name), new_exchange(vhost, name)
    started = process_time()
    vhost.set_policy(Policy("p", pattern, {"max-length": 1}))
    vhost.set_operator_policy(Policy("p", pattern, {"max-length": 1}))
    assert process_time() - started < 10 * patterns.TIME_MAX_S
    assert (queue.policy, queue.operator_policy, exchange.policy) == (None, None, None)


def test_a_permission_with_an_evil_pattern_permits_nothing_that_it_takes_too_long_for() -> None:
    pattern, name = EVIL[0]
    broker = new_broker()
    guest = broker.users["guest"]
    broker.set_permission(guest, "/", Permission(pattern, pattern, pattern))
    for action in ("configure", "write", "read"):
        with pytest.raises(AccessRefused):
            guest.require(action, "/", "queue", name)
    guest.require("read", "/", "queue", "aaa")
    assert not TopicPermission(pattern, pattern).allows("write", name, "guest", "/")


def test_variables_of_topic_permissions_stand_for_themselves_and_not_for_patterns() -> None:
    """rabbit_re.erl (escape, newer than 4.3.0): a user's name must not widen what he may do."""
    permission = TopicPermission(write="^{username}-{vhost}$")
    assert permission.allows("write", "a.b-/", "a.b", "/")
    assert not permission.allows("write", "axb-/", "a.b", "/")
    assert not permission.allows("write", "anything-/", ".*", "/")
