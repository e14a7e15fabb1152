"""Cached answers of a backend, with a clock that tests set."""

from __future__ import annotations

from amqp_broker.broker.backends import answer_cache
from amqp_broker.broker.backends.answer_cache import CachedBackend
from amqp_broker.broker.backends.questions import Answer, Question
from tests.broker.backends.scripted import ALLOWED, AWAY, DENIED, ScriptedBackend

TTL_MS = 1000


class Desk:
    """A cache before a backend."""

    def __init__(self, answer: Answer = ALLOWED, *, keeps_refusals: bool = False) -> None:
        self.now = 0
        self.backend = ScriptedBackend(answer)
        self.cache = CachedBackend(self.backend, TTL_MS, lambda: self.now, b"salt", keeps_refusals=keeps_refusals)

    def asks(self, *parameters: tuple[str, str | bytes]) -> bool:
        """Ask, and return whether the backend was asked."""
        before, answers = len(self.backend.asked), list[Answer]()
        self.cache.ask(Question("user", parameters), answers.append)
        assert answers == [self.backend.answer]
        return len(self.backend.asked) > before


def test_an_answer_is_kept_until_its_time_is_over() -> None:
    desk = Desk(Answer(True, ("management",)))
    assert desk.asks(("username", "anna"))
    desk.now = TTL_MS - 1
    assert not desk.asks(("username", "anna"))
    desk.now = TTL_MS
    assert desk.asks(("username", "anna"))
    desk.cache.clear()
    assert desk.asks(("username", "anna"))


def test_other_passwords_are_other_questions() -> None:
    desk = Desk()
    assert desk.asks(("username", "anna"), ("password", b"one"))
    assert desk.asks(("username", "anna"), ("password", b"two"))
    assert desk.asks(("username", "anna 8 password"), ("password", b""))
    assert not desk.asks(("username", "anna"), ("password", b"one"))


def test_refusals_are_kept_if_that_is_asked_for() -> None:
    desk = Desk(DENIED)
    assert [desk.asks(), desk.asks()] == [True, True]
    keeping = Desk(DENIED, keeps_refusals=True)
    assert [keeping.asks(), keeping.asks()] == [True, False]
    away = Desk(AWAY, keeps_refusals=True)
    assert [away.asks(), away.asks()] == [True, True]


def test_the_oldest_answers_are_forgotten() -> None:
    desk = Desk()
    for number in range(answer_cache.CACHED_MAX + 1):
        desk.asks(("username", str(number)))
    assert not desk.asks(("username", "1"))
    assert desk.asks(("username", "0"))
