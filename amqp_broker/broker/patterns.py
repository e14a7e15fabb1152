"""Regular expressions that administrators set: over names of queues and exchanges, and over routing keys.

They are RabbitMQ's, which are Perl's: unanchored, with lookahead, possessive quantifiers, `[[:alpha:]]` and `\\h`, over
the octets of a name in UTF-8, so that `.` is one octet. The library `regex` reads them so, too. What was tried and
differs from Erlang's `re`:

- refused here: `\\Q…\\E`, `\\k<name>` (`(?P=name)` works), `\\x{…}`, `\\o{…}`, `\\e`, `\\c`, `\\y`, `(?U)`, `(?J)`;
- refused there: lookbehind of no fixed length, `(?r)`, `(?b)`, `(?V1)`, `\\N{…}`;
- another meaning there: `\\w` and `[[:alpha:]]` also match the octets that are letters in Latin-1, `\\Z` stands before
  a last line end, too, `\\v` is any vertical space, `\\N` anything but a line end, `\\m` the letter, and `{,n}` and
  `{e<=1}` are plain text.

Nothing that a user sets may stall the broker. A match that takes too long is none, as one that passes a match limit is
none in RabbitMQ (rabbit_re.erl, 4.3); how long one takes is the only thing in the core that a clock has a say in. A
pattern that would be huge once its repeats are written out is refused.

The library is imported with the first pattern that is not `.*`: a broker without policies starts without it.
"""

from __future__ import annotations

from collections import deque
from functools import cache, lru_cache
from math import prod
from typing import TYPE_CHECKING, Final

from amqp_broker.errors import InvalidParameter

if TYPE_CHECKING:
    import regex

# A name has 255 octets at most, and a pattern that backtracks little is done with that in microseconds.
TIME_MAX_S: Final = 0.02
# A pattern that took too long once: it gets no chance to do the same with a thousand names.
TIME_MAX_SLOW_S: Final = 0.002
# RabbitMQ's limit since 4.3 (rabbit_re.erl).
PATTERN_BYTES_MAX: Final = 1024
# Elements that a pattern may have when its counted repeats are written out: compiling these takes some ten ms.
ELEMENTS_MAX: Final = 50_000
ANYTHING: Final = ".*"
# What is compiled is kept; permissions with variables make a pattern per user.
COMPILED_MAX: Final = 1024

# The common mistakes, as Erlang's `re` calls them; it stops at the same place.
_REASONS: Final = {
    "unterminated character set": "missing terminating ] for character class",
    "missing )": "missing )",
    "unbalanced parenthesis": "unmatched parentheses",
    "nothing to repeat": "nothing to repeat",
    "multiple repeat": "nothing to repeat",
    "bad escape (end of pattern)": "\\\\ at end of pattern",
}

# What is to be logged: one sentence for each pattern that took too long. The shell takes them out.
warnings: Final[deque[str]] = deque(maxlen=100)


class _Compiled:
    """A pattern, and how long it may take; `problem` says why there is no expression."""

    __slots__ = ("expression", "problem", "time_max_s")

    def __init__(self, expression: regex.Pattern[bytes] | None, problem: str = "") -> None:
        self.expression = expression
        self.problem = problem
        self.time_max_s = TIME_MAX_S


def check(pattern: object) -> None:
    """Raise InvalidParameter for what is no regular expression."""
    if not isinstance(pattern, str):
        raise InvalidParameter(f"{pattern!r} is no regular expression")
    if problem := problem_of(pattern):
        raise InvalidParameter(f"regular expression '{pattern}' is invalid: {problem}")


def problem_of(pattern: str) -> str:
    """Why a text is no regular expression, as Erlang's term: what is wrong, and at which octet. "" if it is one."""
    return "" if pattern == ANYTHING else _compiled(pattern).problem


def matches(pattern: str, text: str) -> bool:
    """Whether a text has a match anywhere; a broken pattern has none, nor has one that takes too long."""
    if pattern == ANYTHING:
        return True
    compiled = _compiled(pattern)
    if compiled.expression is None:
        return False
    try:
        return compiled.expression.search(_octets(text), timeout=compiled.time_max_s) is not None
    except TimeoutError:
        if compiled.time_max_s == TIME_MAX_S:
            compiled.time_max_s = TIME_MAX_SLOW_S
            warnings.append(
                f"regular expression '{pattern}' took more than {TIME_MAX_S * 1000:.0f} ms to match a name; "
                "what it takes too long for, it does not match"
            )
        return False


def is_slow(pattern: str) -> bool:
    """Whether a match took too long once."""
    return _compiled(pattern).time_max_s != TIME_MAX_S


def permits(pattern: str, text: str) -> bool:
    """`matches` for permissions, where the empty pattern stands for `^$` instead of matching everything."""
    return matches(pattern or "^$", text)


def escaped(text: str) -> str:
    """A pattern that matches this text only, to stand for a variable in another pattern (rabbit_re.erl, escape)."""
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
    try:
        return _Compiled(regex.compile(octets, cache_pattern=False))
    except regex.error as error:
        message, position = error.msg, error.pos  # type: ignore[attr-defined] # the stubs know neither
        return _Compiled(None, f'{{"{_REASONS.get(message, message)}",{position}}}')
    except RecursionError:
        return _Compiled(None, f'{{"parentheses are too deeply nested",{len(octets)}}}')


_TOKEN: Final = r"""(?<escape>\\.)
    |(?<set>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]])*+\])
    |(?<open>\()
    |(?<close>\))
    |(?<repeat>\{(?<low>\d*)(?:,(?<high>\d*))?\})
    |(?<element>.)"""
# Comments, and another syntax of sets: where one ends is not for `_TOKEN` to tell.
_UNCLEAR: Final = r"\#|\(\?\w*V"


@cache
def _syntax() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    """What finds the tokens of a pattern, and what says that this cannot be relied on."""
    import regex

    return regex.compile(_TOKEN, regex.VERBOSE | regex.DOTALL), regex.compile(_UNCLEAR)


def _element_count(pattern: str) -> int:
    """How many elements a pattern has when each counted repeat is written out as often as it may repeat, at most."""
    tokens, unclear = _syntax()
    if unclear.search(pattern):
        repeats = (_most_times(token) for token in tokens.finditer(pattern.replace("[", "."), overlapped=True))
        return len(pattern) * prod(repeats)
    # Of each group that is open: the elements before its last one, and those of the last.
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
    """How often a counted repeat repeats at most; 1 for any other token."""
    return min(max(int(token["low"] or 1), int(token["high"] or 1), 1), ELEMENTS_MAX + 1)
