"""A session waits for the answers of a remote backend, with bytes and a backend in memory."""

from __future__ import annotations

from collections.abc import Callable

from pamqp import commands

from amqp_broker.broker.backends.questions import Answer, Answers, Question
from amqp_broker.broker.backends.remote_user import RemoteUser
from tests.broker.backends.scripted import ALLOWED, DENIED
from tests.peer import Lab, Peer


class HeldBackend:
    """Keeps questions until `answer`."""

    name = "held"

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self._waiting: list[Callable[[Answer], None]] = []

    def ask(self, question: Question, on_answer: Callable[[Answer], None]) -> None:
        self.asked.append(question)
        self._waiting.append(on_answer)

    def answer(self, answer: Answer = ALLOWED) -> None:
        self._waiting.pop(0)(answer)


class Desk:
    """A client whose permissions a backend decides."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.backend = HeldBackend()
        self.peer: Peer = lab.connect()
        session = self.peer.session
        session.answers = Answers()
        session.user = RemoteUser("anna", (), (self.backend,), None, session.answers, "127.0.0.1")
        session.find_routes()

    def answer(self, answer: Answer = ALLOWED) -> None:
        self.backend.answer(answer)
        self.lab.drain()


def test_a_method_waits_and_those_behind_it(lab: Lab) -> None:
    desk = Desk(lab)
    desk.peer.send(commands.Queue.Declare(queue="one"), commands.Confirm.Select())
    desk.peer.expect_nothing()
    assert desk.peer.session.blocking.is_blocked
    desk.answer()
    assert desk.peer.expect(commands.Queue.DeclareOk).queue == "one"
    desk.peer.expect(commands.Confirm.SelectOk)
    assert not desk.peer.session.blocking.is_blocked


def test_a_server_named_queue_keeps_its_name_while_it_waits(lab: Lab) -> None:
    desk = Desk(lab)
    desk.peer.send(commands.Queue.Declare(queue=""))
    desk.answer()
    asked = dict(desk.backend.asked[0].parameters)["name"]
    assert desk.peer.expect(commands.Queue.DeclareOk).queue == asked
    assert len(desk.backend.asked) == 1
    desk.peer.send(commands.Queue.Declare(queue=""))
    assert dict(desk.backend.asked[1].parameters)["name"] != asked


def test_a_refusal_blames_the_method(lab: Lab) -> None:
    desk = Desk(lab)
    desk.peer.send(commands.Queue.Delete(queue="one"))
    desk.answer(DENIED)
    close = desk.peer.expect(commands.Channel.Close)
    assert (close.reply_code, close.class_id, close.method_id) == (403, 50, 40)


def test_a_publish_waits_and_is_confirmed(lab: Lab) -> None:
    desk = Desk(lab)
    other = lab.connect()
    other.declare("one")
    desk.peer.send(commands.Confirm.Select())
    desk.peer.expect(commands.Confirm.SelectOk)
    for _ in range(2):
        desk.peer.publish("one", b"hello")
    desk.peer.expect_nothing()
    desk.answer()
    desk.peer.expect(commands.Basic.Ack)
    assert len(desk.backend.asked) == 1
    assert len(lab.vhost.queues["one"].backlog) == 2


def test_a_connection_that_ends_while_it_waits_is_left_alone(lab: Lab) -> None:
    desk = Desk(lab)
    desk.peer.send(commands.Queue.Declare(queue="one"))
    desk.peer.disconnect()
    desk.answer()
    assert "one" not in lab.vhost.queues


def test_a_connection_that_is_closed_while_it_waits_reads_the_answer(lab: Lab) -> None:
    desk = Desk(lab)
    desk.peer.send(commands.Queue.Declare(queue="one"))
    desk.peer.session.force_close("maintenance", lab.now)
    desk.answer()
    assert desk.peer.expect_connection_close(320) == "CONNECTION_FORCED - maintenance"
    assert "one" not in lab.vhost.queues


def test_a_new_channel_asks_again(lab: Lab) -> None:
    desk = Desk(lab)
    desk.peer.send(commands.Queue.Declare(queue="one"))
    desk.answer()
    desk.peer.expect(commands.Queue.DeclareOk)
    desk.peer.declare("one")
    assert len(desk.backend.asked) == 1
    desk.peer.open_channel(2)
    desk.peer.send(commands.Queue.Declare(queue="one"), channel=2)
    desk.peer.expect_nothing()
    assert len(desk.backend.asked) == 2


def test_cached_routes_end_with_their_session(lab: Lab) -> None:
    desk = Desk(lab)
    assert len(lab.vhost.route_cache._by_user) == 2
    desk.peer.disconnect()
    assert len(lab.vhost.route_cache._by_user) == 1
