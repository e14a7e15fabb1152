"""What goes wrong, as Spark shows it: each error says which option it is about."""

from __future__ import annotations


class OptionError(ValueError):
    """An option, or a column, that cannot be: unknown, malformed, missing, or contradicting another."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"option '{option}': {problem}")


class BrokerError(RuntimeError):
    """The broker refused, closed or did not answer; `code` is AMQP's reply code, 0 where there was none."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class ConnectionLost(BrokerError):
    """The socket was closed or the broker fell silent: what was under way may be tried again."""


class DataLoss(RuntimeError):
    """Messages that the query was to read are gone, and `failOnDataLoss` is true."""
