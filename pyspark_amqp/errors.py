"""Errors as Spark shows them, with the name of the option that causes them."""

from __future__ import annotations


class OptionError(ValueError):
    """An option or column is unknown, malformed, missing, or contradicts another."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"option '{option}': {problem}")


class BrokerError(RuntimeError):
    """The broker refused, closed or did not answer; `code` is AMQP's reply code, or 0."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class ConnectionLost(BrokerError):
    """The socket was closed, or the broker fell silent: a retry may succeed."""


class UnknownHost(ConnectionLost):
    """No host of the address has a known name, and this process has reached none of them before."""


class LoginRefused(ConnectionLost):
    """The broker refused a password of a file or a variable, where it may have changed."""


class DataLoss(RuntimeError):
    """Messages of the query are gone, and `failOnDataLoss` is true."""
