"""The answers that a connection keeps."""

from __future__ import annotations

import pytest

from amqp_broker.broker.backends.questions import KEPT_MAX, RESOURCE, TOPIC, Answers, Question, Unanswered
from tests.broker.backends.scripted import ALLOWED, AWAY, DENIED, ScriptedBackend

BACKEND = ScriptedBackend()


def about(number: int, kind: str = RESOURCE) -> Question:
    return Question(kind, (("name", str(number)),))


def is_known(answers: Answers, question: Question) -> bool:
    try:
        answers.of(BACKEND, question)
    except Unanswered:
        return False
    return True


def test_an_answer_is_kept_for_its_backend() -> None:
    answers = Answers()
    with pytest.raises(Unanswered) as unanswered:
        answers.of(BACKEND, about(1))
    done: list[bool] = []
    unanswered.value.ask(lambda: done.append(True))
    assert done == [True]
    assert answers.of(BACKEND, about(1)) == ALLOWED
    with pytest.raises(Unanswered):
        answers.of(ScriptedBackend(name="another"), about(1))


def test_the_answers_that_were_used_last_are_kept() -> None:
    answers = Answers()
    for number in range(KEPT_MAX):
        answers.add(BACKEND, about(number), ALLOWED)
    assert is_known(answers, about(0))
    answers.add(BACKEND, about(KEPT_MAX), ALLOWED)
    answers.add(BACKEND, about(0, TOPIC), ALLOWED)
    known = [number for number in range(KEPT_MAX + 1) if is_known(answers, about(number))]
    assert known == [0, *range(2, KEPT_MAX + 1)]


def test_an_http_request_keeps_all() -> None:
    answers = Answers(is_bounded=False)
    for number in range(100):
        answers.add(BACKEND, about(number), ALLOWED)
    assert all(is_known(answers, about(number)) for number in range(100))


def test_refusals_and_errors_are_forgotten() -> None:
    answers = Answers()
    for number, answer in enumerate((ALLOWED, DENIED, AWAY)):
        answers.add(BACKEND, about(number), answer)
    answers.forget_refusals()
    assert [is_known(answers, about(number)) for number in range(3)] == [True, False, False]
    answers.forget()
    assert not is_known(answers, about(0))


def test_no_text_of_a_question_has_the_password() -> None:
    question = Question("user", (("username", "anna"), ("password", b"secret")))
    with pytest.raises(Unanswered) as unanswered:
        Answers().of(BACKEND, question)
    assert "secret" not in f"{question!r} {question} {unanswered.value}"
