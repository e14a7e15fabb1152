"""Regular expressions that administrators set, for names of queues and exchanges and for routing keys.

RabbitMQ uses Perl's syntax: unanchored, with lookahead, possessive quantifiers, `[[:alpha:]]` and `\\h`, on the octets
of a name in UTF-8, so that `.` is one octet. So does the library `regex`. Known differences from Erlang's `re`:

- refused here: `\\Q…\\E`, `\\k<name>` (`(?P=name)` works), `\\x{…}`, `\\o{…}`, `\\e`, `\\c`, `\\y`, `(?U)`, `(?J)`;
- refused there: lookbehind of no fixed length, `(?r)`, `(?b)`, `(?V1)`, `\\N{…}`;
- another meaning there: `\\w` and `[[:alpha:]]` also match the octets that are letters in Latin-1, `\\Z` also matches
  before a final line end, `\\v` is any vertical space, `\\N` anything but a line end, and `\\m` the letter.

A pattern must not stall the broker. A match that takes too long counts as no match, like one above the match limit in
RabbitMQ (rabbit_re.erl, 4.3). Only here does the core measure time. A pattern that takes too long for many names is
given up: a policy or a filter may try it on thousands. A match that takes too long is tried once more: the machine may
have stood still meanwhile. A pattern that would be huge with its repeats written out is refused.

The library is imported with the first pattern that is not `.*`: a broker without policies starts without it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import cache, lru_cache
from math import prod
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.scheduling.portions import Steps

if TYPE_CHECKING:
    import regex

# A name has at most 255 octets; a pattern that backtracks little matches it in microseconds.
TIME_MAX_S: Final = 0.01
# For a pattern that took too long once, because it may be tried on thousands of names.
TIME_MAX_SLOW_S: Final = 0.002
# The clock also runs while a virtual machine stands still, which hardly happens twice in a row.
ATTEMPTS: Final = 2
# For all matches with a pattern that took too long. Each match in time gives a little back, so that a few slow names
# among many do not add up over the days.
TIME_MAX_ALL_S: Final = 0.05
TIME_BACK_S: Final = 0.00002
# RabbitMQ's limit since 4.3 (rabbit_re.erl).
PATTERN_BYTES_MAX: Final = 1024
# Limit of a pattern's elements with its counted repeats written out; compiling this many takes some ten ms.
ELEMENTS_MAX: Final = 50_000
ANYTHING: Final = ".*"
# Limit of compiled patterns to cache; permissions with variables make a pattern per user.
COMPILED_MAX: Final = 1024

# Erlang's texts for common mistakes; the positions are the same.
_REASONS: Final = {
    "unterminated character set": "missing terminating ] for character class",
    "missing )": "missing )",
    "unbalanced parenthesis": "unmatched parentheses",
    "nothing to repeat": "nothing to repeat",
    "multiple repeat": "nothing to repeat",
    "bad escape (end of pattern)": "\\\\ at end of pattern",
}

# Log messages, one for each pattern that took too long; the server removes them.
warnings: Final[deque[str]] = deque(maxlen=100)


class _Compiled:
    """A compiled pattern and its time limit; `problem` is the reason if it is invalid.

    `lost_s` is the time of matches that took too long, less what matches in time have given back.
    """

    __slots__ = ("expression", "lost_s", "problem", "time_max_s")

    def __init__(self, expression: regex.Pattern[bytes] | None, problem: str = "") -> None:
        self.expression = expression
        self.problem = problem
        self.time_max_s = TIME_MAX_S
        self.lost_s = 0.0

    @property
    def is_given_up(self) -> bool:
        return self.lost_s >= TIME_MAX_ALL_S

    def lose(self, pattern: str) -> None:
        """Count a match that took too long."""
        if self.time_max_s == TIME_MAX_S:
            warnings.append(
                f"regular expression '{pattern}' took more than {ATTEMPTS * TIME_MAX_S * 1000:.0f} ms to match a name; "
                "names for which it takes too long do not match"
            )
        self.lost_s += ATTEMPTS * self.time_max_s
        self.time_max_s = TIME_MAX_SLOW_S
        if self.is_given_up:
            warnings.append(
                f"regular expression '{pattern}' takes too long for many names, and matches no name any more"
            )


def check(pattern: object) -> None:
    """Raise InvalidParameter for an invalid regular expression."""
    if not isinstance(pattern, str):
        raise InvalidParameter(f"{pattern!r} is no regular expression")
    if problem := problem_of(pattern):
        raise InvalidParameter(f"regular expression '{pattern}' is invalid: {problem}")


def problem_of(pattern: str) -> str:
    """Return Erlang's term for the fault of a regular expression and its octet; "" if it is valid."""
    return "" if pattern == ANYTHING else _compiled(pattern).problem


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches anywhere in a text; False if it is invalid or takes too long."""
    if pattern == ANYTHING:
        return True
    compiled = _compiled(pattern)
    if compiled.expression is None or compiled.is_given_up:
        return False
    octets = _octets(text)
    for _ in range(ATTEMPTS):
        try:
            found = compiled.expression.search(octets, timeout=compiled.time_max_s)
        except TimeoutError:
            continue
        if compiled.lost_s:
            compiled.lost_s = max(0.0, compiled.lost_s - TIME_BACK_S)
        return found is not None
    compiled.lose(pattern)
    return False


def is_slow(pattern: str) -> bool:
    """Return whether a match with this pattern has ever taken too long."""
    return _compiled(pattern).time_max_s != TIME_MAX_S


def is_given_up(pattern: str) -> bool:
    """Return whether a pattern matches no name any more, because it took too long for many names."""
    return pattern != ANYTHING and _compiled(pattern).is_given_up


def problem_with(pattern: str, names: Iterable[str]) -> Steps[str]:
    """Return why a pattern cannot be used for these names; "" if it can."""
    for name in names:
        matches(pattern, name)
        yield
    return "regular expression takes too long" if is_given_up(pattern) else ""


def permits(pattern: str, text: str) -> bool:
    """Return `matches` for a permission, where the empty pattern means `^$` and does not match everything."""
    return matches(pattern or "^$", text)


def escaped(text: str) -> str:
    """Return a pattern that matches only this text, for use in another (rabbit_re.erl, escape)."""
    import regex

    return regex.escape(text)


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=COMPILED_MAX)
def _compiled(pattern: str) -> _Compiled:
    import regex

    octets = _octets(pattern)
    if len(octets) > PATTERN_BYTES_MAX:
        return _Compiled(None, "pattern_too_long")
    if _element_count(pattern) > ELEMENTS_MAX:
        return _Compiled(None, f'{{"regular expression is too large",{len(octets)}}}')
    plain, added = _with_plain_braces(octets)
    try:
        return _Compiled(regex.compile(plain, cache_pattern=False))
    except regex.error as error:
        message, position = error.msg, error.pos  # type: ignore[attr-defined] # the stubs know neither
        position -= sum(at < position for at in added)
        return _Compiled(None, f'{{"{_REASONS.get(message, message)}",{position}}}')
    except RecursionError:
        return _Compiled(None, f'{{"parentheses are too deeply nested",{len(octets)}}}')


def _with_plain_braces(pattern: bytes) -> tuple[bytes, list[int]]:
    """Return the pattern with backslashes before braces that begin no counted repeat, and their places.

    They are plain text in Erlang (`{,n}` until Erlang 27); the library takes some for approximate matches: `{e<=1}`.
    """
    text = pattern.decode("latin-1")
    tokens, unclear = _syntax()
    if "{" not in text or unclear.search(text):
        return pattern, []
    parts, added, size = list[str](), list[int](), 0
    for token in tokens.finditer(text):
        part = token[0]
        if part.startswith("{") and not token["low"]:
            part = "\\" + part
            added.append(size)
        parts.append(part)
        size += len(part)
    return "".join(parts).encode("latin-1"), added


_TOKEN: Final = r"""(?<escape>\\.)
    |(?<set>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]])*+\])
    |(?<open>\()
    |(?<close>\))
    |(?<repeat>\{(?<low>\d*)(?:,(?<high>\d*))?\})
    |(?<element>.)"""
# Comments, and another syntax of sets, whose ends `_TOKEN` cannot find.
_UNCLEAR: Final = r"\#|\(\?\w*V"


@cache
def _syntax() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    """Return an expression for the tokens of a pattern, and one for patterns where it is not reliable."""
    import regex

    return regex.compile(_TOKEN, regex.VERBOSE | regex.DOTALL), regex.compile(_UNCLEAR)


def _element_count(pattern: str) -> int:
    """Return the largest number of elements of a pattern with its counted repeats written out."""
    tokens, unclear = _syntax()
    if unclear.search(pattern):
        repeats = (_most_times(token) for token in tokens.finditer(pattern.replace("[", "."), overlapped=True))
        return len(pattern) * prod(repeats)
    # For each open group: the elements before its last one, and those of the last.
    counts = [(0, 0)]
    for token in tokens.finditer(pattern):
        before, last = counts[-1]
        if token["open"]:
            counts.append((0, 0))
        elif token["close"] and len(counts) > 1:
            counts.pop()
            counts[-1] = (sum(counts[-1]), before + last)
        elif token["repeat"]:
            counts[-1] = (before, last * _most_times(token))
        else:
            counts[-1] = (before + last, 1)
    return sum(map(sum, counts))


def _most_times(token: regex.Match[str]) -> int:
    """Return the largest number of repeats of a counted repeat; 1 for any other token."""
    return min(max(int(token["low"] or 1), int(token["high"] or 1), 1), ELEMENTS_MAX + 1)
