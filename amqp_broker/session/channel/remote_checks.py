"""Checks that wait for a remote backend. The session alone waits, and reads nothing meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from amqp_broker.amqp.connection_states import RUNNING
from amqp_broker.broker.backends.questions import Answers, Unanswered

if TYPE_CHECKING:
    from amqp_broker.session.session import Session

# Of sessions whose user the broker itself knows.
NO_ANSWERS: Final = Answers()


class Retry:
    """A check to repeat for a method of channel `number`; it is due when the backend has answered."""

    def __init__(self, call: Callable[[], None], method_id: int, number: int) -> None:
        self.call = call
        self.method_id = method_id
        self.number = number
        self.is_due = False


def ask(session: Session, question: Unanswered, retry: Callable[[], None], method_id: int = 0, number: int = 0) -> None:
    """Have a backend answer, and then `retry` a method of channel `number` before anything else is read."""
    waiting = session.retry = Retry(retry, method_id, number)
    session.is_working = True
    if session.state is RUNNING:
        session.blocking.update()
    else:
        session.blocking.block()
        session.outbox.request_flush()

    def read_on() -> None:
        waiting.is_due = True
        session.read_on()

    question.ask(lambda: session.broker.undrained.append(read_on))


def end_wait(session: Session) -> None:
    """Read the socket again."""
    if session.state is RUNNING:
        session.blocking.update()
    elif session.retry is not None:
        session.blocking.end()
        session.outbox.request_flush()


def forget_answers(session: Session) -> None:
    """Ask for each permission again: as in RabbitMQ, a new channel knows none."""
    if session.user is not None and session.user.asks:
        session.answers.forget()
        session.routes.clear()


def routes_key(session: Session) -> str:
    """Return the key of a session's cached routes: the user's name, or one of its own.

    Two users of a remote backend with the same name may have other permissions.
    """
    assert session.user is not None
    return f"{session.user.name}\0{session.number}" if session.user.asks else session.user.name


def forget_routes(session: Session) -> None:
    """Forget the routes of a session that has ended, if no other one uses them."""
    if session.user is not None and session.user.asks and session.vhost is not None:
        session.vhost.route_cache.forget(routes_key(session))
