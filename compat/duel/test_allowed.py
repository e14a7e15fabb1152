"""Differences that may stay: each is one only in the case that its reason names."""

from __future__ import annotations

import pytest
from pamqp.commands import Basic, Exchange, Queue

from amqp_broker.conformance.duel.http_steps import PERMISSIONS
from amqp_broker.conformance.duel.steps import At, Call, Http, Program, Publish
from compat.duel.allowed import is_allowed, normalized

COPY = "a1     headers={CC: A[S'q1']} body=b'1'"
DEAD = "a1     headers={CC: A[S'q1'], x-death: A[F{count: l1, queue: S'q0'}]} body=b'1'"
DEAD_AGAIN = "a1     headers={x-death: A[F{count: l2, reason: S'rejected', queue: S'q0'}]} body=b'2'"
ROUND = DEAD_AGAIN.replace("]} body", ", F{count: l1, reason: S'expired', queue: S'q1'}]} body")
BY_ITSELF = ROUND.replace("rejected", "maxlen")
CANCEL = "a1 basic.cancel consumer_tag='c0' nowait=true"


def declared(**arguments: object) -> Program:
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    return (Call(At(), Queue.Declare, {"queue": "q0", "arguments": given}),)


def dealt(first: str, second: str) -> list[str]:
    """Return a window in which two consumers get a message each."""
    return [
        *(f"a1 basic.deliver consumer_tag='{first}'", "a1     body=b'1'"),
        *(f"a1 basic.deliver consumer_tag='{second}'", "a1     body=b'2'"),
    ]


TIMED, PRIORITIES, PLAIN = declared(x_consumer_timeout=700), declared(x_max_priority=5), declared()
LIMITED: Program = (Call(At(), Basic.Qos, {"prefetch_count": 1, "global_": True}),)
BLIND: Program = (Publish(At(), {"headers": {"BCC": ["q1"]}}),)


@pytest.mark.parametrize(
    ("program", "theirs", "ours", "is_free"),
    [
        (PLAIN, [DEAD, COPY], [COPY, DEAD], True),
        (PLAIN, [COPY], [DEAD], True),
        (PLAIN, ["a1     body=b'1'"], ["a1     body=b'2'"], False),
        (BLIND, ["a1     body=b'1'", DEAD], [DEAD, "a1     body=b'1'"], True),
        (TIMED, [CANCEL], [CANCEL, CANCEL], True),
        (TIMED, [CANCEL, CANCEL], [CANCEL], False),
        (PLAIN, [CANCEL], [CANCEL, CANCEL], False),
        (PRIORITIES, ["q0: 2 ready, 0 consumers"], ["q0: 1 ready, 0 consumers"], True),
        (PRIORITIES, ["q0: 1 ready, 0 consumers"], ["q0: 2 ready, 0 consumers"], False),
        (PLAIN, ["q0: 2 ready, 0 consumers"], ["q0: 1 ready, 0 consumers"], False),
        (PLAIN, dealt("c0", "c1"), dealt("c1", "c0"), True),
        (PLAIN, dealt("c0", "c0"), dealt("c1", "c0"), False),
        (LIMITED, [COPY, "q0: 1 ready", "q1: 2 ready"], [COPY, "q0: 2 ready", "q1: 1 ready"], True),
        (LIMITED, [COPY, "q0: 1 ready", "q1: 1 ready"], [COPY, "q0: 2 ready", "q1: 1 ready"], False),
        (PLAIN, [ROUND], [ROUND.replace("l2", "l3")], True),
        (PLAIN, [ROUND], ["a1     body=b'2'"], False),
        (PLAIN, [ROUND], [ROUND.replace("headers={", "headers={x-first-death-queue: S'q1', ")], False),
        (PLAIN, [ROUND, BY_ITSELF], [ROUND.replace("l2", "l3"), BY_ITSELF.replace("l2", "l3")], False),
        (PLAIN, [DEAD_AGAIN], [DEAD_AGAIN.replace("l2", "l3")], False),
        (PLAIN, [BY_ITSELF], [BY_ITSELF.replace("l2", "l3")], False),
        (PLAIN, [BY_ITSELF], [BY_ITSELF.replace("b'2'", "b'3'")], True),
        (PLAIN, [DEAD], [DEAD.replace("q0", "q1")], False),
        (PLAIN, ["a0 connection.close reply_code=541 reply_text='INTERNAL_ERROR'"], [], True),
        (PLAIN, ["a0 connection.close reply_code=530 reply_text='NOT_ALLOWED'"], [], False),
    ],
)
def test_a_difference_may_stay_in_its_own_case_only(
    program: Program, theirs: list[str], ours: list[str], is_free: bool
) -> None:
    assert is_allowed(program, theirs, ours, "4.3") is is_free


def refused(permission: str) -> list[str]:
    text = f"{permission} access to queue 'q0' in vhost '/' refused for user 'dueller'"
    return [f'd1 channel.close reply_code=403 reply_text="ACCESS_REFUSED - {text}"']


def test_a_channel_may_remember_what_it_was_permitted() -> None:
    revoked = Http("PUT", PERMISSIONS, {"configure": "", "write": "", "read": ""})
    bind: Program = (revoked, Call(At(3), Queue.Bind, {"queue": "q0"}))
    passive: Program = (revoked, Call(At(3), Queue.Declare, {"queue": "q0", "passive": True}))
    assert is_allowed(bind, ["d1 queue.bind-ok"], refused("write"), "4.3")
    assert is_allowed(bind, refused("read"), refused("write"), "4.3")
    assert is_allowed(passive, ["d1 queue.declare-ok"], refused("configure"), "4.3")
    assert not is_allowed(passive, refused("configure"), refused("read"), "4.3")
    assert not is_allowed(bind, refused("write"), ["d1 queue.bind-ok"], "4.3")
    assert not is_allowed(bind[1:], ["d1 queue.bind-ok"], refused("write"), "4.3")


def test_a_quorum_queue_of_rabbitmq_3_10_may_sort_headers() -> None:
    theirs = ["a1     headers={b: I1, t: F{x: A[I1]}, z: V} body=b'1'", "q0: 0 ready"]
    ours = ["a1     headers={z: V, t: F{x: A[I1]}, b: I1} body=b'1'", "q0: 0 ready"]
    assert is_allowed(declared(x_queue_type="quorum"), theirs, ours, "3.13")
    assert not is_allowed(declared(x_queue_type="quorum"), theirs, ours, "4.0")
    assert not is_allowed(PLAIN, theirs, ours, "3.13")
    assert not is_allowed(declared(x_queue_type="quorum"), theirs, [ours[0].replace("I1", "I2"), ours[1]], "3.13")
    assert not is_allowed(declared(x_queue_type="quorum"), theirs, [ours[0], "q0: 1 ready"], "3.13")
    assert is_allowed(declared(x_queue_type="stream"), theirs, ours, "3.13")
    assert not is_allowed(declared(x_queue_type="stream"), theirs, ours, "4.0")


def test_rabbitmq_3_10_may_forget_the_expiration_of_a_dead_letter_from_a_lazy_queue() -> None:
    ours = [
        "a1     headers={x-death: A[F{count: l1, original-expiration: S'0', queue: S'q0'}]} body=b'1'",
        "q0: 0 ready",
    ]
    theirs = [ours[0].replace("original-expiration: S'0', ", ""), ours[1]]
    lazy = declared(x_queue_mode="lazy")
    assert is_allowed(lazy, theirs, ours, "3.13")
    assert not is_allowed(lazy, theirs, ours, "4.0")
    assert not is_allowed(lazy, ours, theirs, "3.13")
    assert not is_allowed(PLAIN, theirs, ours, "3.13")
    assert not is_allowed(lazy, theirs, [*ours, "q1: 0 ready"], "3.13")


def test_rabbitmq_3_10_may_deliver_more_than_the_prefetch_after_a_delivery_limit() -> None:
    more = [
        "a1 basic.deliver consumer_tag='c0'",
        "a1     body=b'7'",
        "a1 basic.deliver consumer_tag='c0'",
        "a1     body=b'8'",
    ]
    theirs, ours = [*more, "q1: 3 ready, 1 consumers"], [*more[:2], "q1: 4 ready, 1 consumers"]
    limited = declared(x_queue_type="quorum", x_delivery_limit=2)
    assert is_allowed(limited, theirs, ours, "3.13")
    assert not is_allowed(limited, theirs, ours, "4.0")
    assert not is_allowed(limited, ours, theirs, "3.13")
    assert not is_allowed(declared(x_queue_type="quorum"), theirs, ours, "3.13")
    assert not is_allowed(limited, theirs, [*ours[:-1], "q1: 3 ready, 1 consumers"], "3.13")
    full = declared(x_queue_type="quorum", x_delivery_limit=2, x_max_length=3)
    assert is_allowed(full, theirs, [*ours[:-1], "q1: 3 ready, 1 consumers"], "3.13")


def test_streams_of_rabbitmq_3_10_get_nothing_of_a_history() -> None:
    theirs = ["lab     headers={x-stream-offset: l0} body=b'1'"]
    ours = [*theirs, "lab     headers={x-stream-offset: l1} body=b'2'"]
    bound: Program = (
        *declared(x_queue_type="stream"),
        Call(At(), Exchange.Declare, {"exchange": "x0", "exchange_type": "x-recent-history"}),
    )
    assert is_allowed(bound, theirs, ours, "3.13")
    assert not is_allowed(bound, theirs, ours, "4.0")
    assert not is_allowed(bound, ours, theirs, "3.13")
    assert not is_allowed(bound, ["lab     body=b'3'"], ours, "3.13")
    assert not is_allowed(declared(x_queue_type="stream"), theirs, ours, "3.13")


def test_empty_headers_of_rabbitmq_3_10_are_left_out_over_http() -> None:
    for given in ('{"headers": {}}', "{}", "[]"):
        assert normalized(f'lab GET x: 200 {{"properties": {given}}}', "3.13") == 'lab GET x: 200 {"properties": {}}'
    for given in ('{"headers": {}, "user_id": "guest"}', '{"user_id": "guest", "headers": {}}'):
        line = f'lab GET x: 200 {{"properties": {given}}}'
        assert normalized(line, "3.13") == 'lab GET x: 200 {"properties": {"user_id": "guest"}}'
        assert normalized(line, "4.0") == line


def test_the_header_cc_of_a_stream_is_left_out_with_the_offset() -> None:
    line = "lab     headers={CC: A[S'q1'], h: I1, x-stream-offset: l3} body=b'1'"
    assert normalized(line, "3.13") == "lab     headers={h: I1} body=b'1'"
    assert "CC" in normalized(line, "4.0")
