"""Regular expressions that administrators set: over names of queues and exchanges, and over routing keys.

They are RabbitMQ's, which are Perl's: unanchored, and `\\w`, `\\d` and `\\s` mean ASCII. Python's differ in what is
rare here: there is no `\\h`, `\\Q…\\E` and `[[:alpha:]]`, and a named group is `(?P<name>…)`.
"""

from __future__ import annotations

import re

from amqp_broker.errors import InvalidParameter


def check(pattern: object) -> None:
    """Raise InvalidParameter for what is no regular expression."""
    if not isinstance(pattern, str):
        raise InvalidParameter(f"{pattern!r} is no regular expression")
    try:
        re.compile(pattern, re.ASCII)
    except re.error as error:
        raise InvalidParameter(
            f"regular expression '{pattern}' is invalid: {error.msg} at position {error.pos}"
        ) from None


def matches(pattern: str, text: str) -> bool:
    """Whether a text has a match anywhere. Compiled patterns are cached by `re`; a broken one matches nothing."""
    if pattern == ".*":
        return True
    try:
        return re.search(pattern, text, re.ASCII) is not None
    except re.error:
        return False


def permits(pattern: str, text: str) -> bool:
    """`matches` for permissions, where the empty pattern stands for `^$` instead of matching everything."""
    return matches(pattern or "^$", text)
