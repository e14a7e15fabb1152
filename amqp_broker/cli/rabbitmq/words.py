"""Words of a command line: invalid ones, numbers, and names in paths.

rabbitmqadmin, which runs without the package, needs them as well.
"""

from __future__ import annotations

from amqp_broker.exit_codes import EX_USAGE

# Octets that need no quoting in a path (RFC 3986).
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Misuse(Exception):
    """The command line is invalid; the tool also shows the usage."""

    def __init__(self, reason: str, exit_code: int = EX_USAGE, headline: str = "Error (argument validation)") -> None:
        super().__init__(reason)
        self.reason = reason
        self.exit_code = exit_code
        self.headline = headline


def path_of(word: str) -> str:
    """Return a word quoted for a path, as by urllib's `quote`."""
    return "".join(chr(octet) if octet in UNRESERVED else f"%{octet:02X}" for octet in word.encode())


def is_number(text: str) -> bool:
    """Return whether a text is a number without a sign."""
    return text.replace(".", "", 1).isdecimal()
