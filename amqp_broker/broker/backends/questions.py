"""Questions to remote backends, their answers, and the answers that one client's connection keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

# Kinds of questions.
USER: Final = "user"
VHOST: Final = "vhost"
RESOURCE: Final = "resource"
TOPIC: Final = "topic"

# Answers about resources and about topics that a connection keeps (rabbit_channel.erl, MAX_PERMISSION_CACHE_SIZE).
KEPT_MAX: Final = 12


class Question(NamedTuple):
    """A kind, and parameters in the order of RabbitMQ's plugin for HTTP."""

    kind: str
    parameters: tuple[tuple[str, str | bytes], ...]

    def __repr__(self) -> str:
        # The parameters have a password.
        return f"Question({self.kind!r})"


class Answer(NamedTuple):
    """A backend's answer. `error` says as an Erlang term why there is none; it then allows nothing."""

    is_allowed: bool
    tags: tuple[str, ...] = ()
    error: str = ""


class Backend(Protocol):
    """A remote backend. `name` is that of RabbitMQ's module."""

    name: str

    def ask(self, question: Question, on_answer: Callable[[Answer], None]) -> None:
        """Call back with the answer, now or later, in the thread of the caller; never raise."""
        ...


class Answers:
    """The answers that a connection, or an HTTP request, has got.

    With `is_bounded`, those about resources and about topics are the last 12 of each.
    """

    def __init__(self, *, is_bounded: bool = True) -> None:
        self._is_bounded = is_bounded
        self._kept: dict[str, dict[tuple[str, Question], Answer]] = {}

    def of(self, backend: Backend, question: Question) -> Answer:
        """Return the answer of a backend. Raises Unanswered."""
        kept = self._kept.get(question.kind, {})
        answer = kept.get((backend.name, question))
        if answer is None:
            raise Unanswered(self, backend, question)
        # The one that was used last is forgotten last.
        kept[backend.name, question] = kept.pop((backend.name, question))
        return answer

    def add(self, backend: Backend, question: Question, answer: Answer) -> None:
        """Keep an answer."""
        kept = self._kept.setdefault(question.kind, {})
        kept[backend.name, question] = answer
        if self._is_bounded and len(kept) > KEPT_MAX:
            del kept[next(iter(kept))]

    def forget(self) -> None:
        """Forget all answers."""
        self._kept.clear()

    def forget_refusals(self) -> None:
        """Forget refusals and errors: as in RabbitMQ, they are asked for again."""
        for kept in self._kept.values():
            for key in [key for key, answer in kept.items() if not answer.is_allowed]:
                del kept[key]


class Unanswered(Exception):
    """A check needs the answer of a remote backend."""

    def __init__(self, answers: Answers, backend: Backend, question: Question) -> None:
        super().__init__(f"{backend.name} has not answered {question!r}")
        self._answers, self._backend, self._question = answers, backend, question

    def ask(self, on_done: Callable[[], None]) -> None:
        """Ask the backend, and call back when the same check has its answer."""

        def keep(answer: Answer) -> None:
            self._answers.add(self._backend, self._question, answer)
            on_done()

        self._backend.ask(self._question, keep)
