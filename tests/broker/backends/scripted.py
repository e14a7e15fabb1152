"""A backend in memory, for what depends on its answers alone."""

from __future__ import annotations

from collections.abc import Callable

from amqp_broker.broker.backends.questions import Answer, Question, Unanswered

ALLOWED = Answer(True)
DENIED = Answer(False)
AWAY = Answer(False, error="timeout")


class ScriptedBackend:
    """Answers `answer` at once; `asked` has the questions."""

    def __init__(self, answer: Answer = ALLOWED, name: str = "scripted") -> None:
        self.name = name
        self.answer = answer
        self.asked: list[Question] = []

    def ask(self, question: Question, on_answer: Callable[[Answer], None]) -> None:
        self.asked.append(question)
        on_answer(self.answer)


def answered(check: Callable[[], object]) -> object:
    """Make a check until its questions are answered."""
    for _ in range(10):
        try:
            return check()
        except Unanswered as question:
            question.ask(lambda: None)
    raise AssertionError("a check asks without end")
