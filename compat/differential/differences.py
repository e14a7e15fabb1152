"""Intended differences from the oracle's answers. Each title is a heading of `compat/DIFFERENCES.md`.

The oracle is RabbitMQ 3.10, and amqp-broker imitates 4.2: most entries are changes in RabbitMQ in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class Change(NamedTuple):
    """In this scenario, `answered` replaces `rabbitmq` of RabbitMQ's transcript, which must occur."""

    scenario: str
    rabbitmq: str
    answered: str


class Pattern(NamedTuple):
    """A regular expression that may match in any scenario, and must match in `scenario`."""

    regex: str
    scenario: str


class Rewrite(NamedTuple):
    """A regular expression that is replaced in every transcript of RabbitMQ, and must match in `scenario`."""

    regex: str
    replacement: str | Callable[[re.Match[str]], str]
    scenario: str


@dataclass(frozen=True)
class Difference:
    """A difference with its reason: changes of single scenarios, or text that only one broker has."""

    title: str
    why: str
    changes: tuple[Change, ...] = ()
    # Only amqp-broker has it.
    addition: Pattern | None = None
    # Only RabbitMQ has it.
    omission: Pattern | None = None
    # Both have it, each in its form.
    rewrite: Rewrite | None = None

    @property
    def scenarios(self) -> set[str]:
        """Return the scenarios in which the difference must occur."""
        return {one.scenario for one in (*self.changes, self.addition, self.omission, self.rewrite) if one is not None}


_END = "a< the broker closed the socket"
_CRASH = f"a0< connection.close reply_code=541 reply_text='INTERNAL_ERROR' class_id=0 method_id=0\n{_END}"


def _unknown_type(scenario: str, text: str) -> Change:
    return Change(
        scenario,
        f'a0< connection.close reply_code=503 reply_text="COMMAND_INVALID - {text}" class_id=40 method_id=10\n{_END}',
        f'a1< channel.close reply_code=406 reply_text="PRECONDITION_FAILED - {text}" class_id=40 method_id=10',
    )


def _first_refused(rabbitmq: str, answered: str) -> Change:
    text = "invalid arg '{}' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"
    scenario = "known_arguments_of_a_queue_type_are_checked_before_unknown_ones"
    return Change(scenario, text.format(rabbitmq), text.format(answered))


def _type_differs(scenario: str, rabbitmq: str, answered: str) -> Change:
    return Change(scenario, f": received {rabbitmq}", f": received {answered}")


def _sorted_headers(match: re.Match[str]) -> str:
    """Return a line with the keys of its headers sorted, each with its first value."""
    headers: dict[str, str] = {}
    for item in re.split(r", (?=[^\]]*(?:\[|$))", match[2]):
        headers.setdefault(item.partition(": ")[0], item)
    return f"{match[1]}headers={{{', '.join(headers[key] for key in sorted(headers))}}}"


def _without_copies(scenario: str, copy: str) -> Change:
    return Change(scenario, "headers={x-death:", f"headers={{CC: A[S'{copy}'], x-death:")


def _no_nack(method_id: int) -> str:
    return (
        'a0< connection.close reply_code=540 reply_text="NOT_IMPLEMENTED - basic.nack and basic.reject not supported '
        f"by stream queues queue 's' in vhost '/'\" class_id=60 method_id={method_id}"
    )


def _death_in(queue: str, expiration: str = "") -> str:
    return (
        f"F{{count: l1, exchange: S'', {expiration}queue: S'{queue}', reason: S'rejected', "
        f"routing-keys: A[S'{queue}'], time: T<now>}}"
    )


_REPLY = (
    "a1< basic.deliver consumer_tag='replies' delivery_tag={} redelivered=false exchange='' "
    "routing_key='amq.rabbitmq.reply-to-<1>'"
)
ORIGINAL_EXPIRATION = "original-expiration: S'600000', "
_SECOND_OF_A_STREAM = (
    "a1< basic.deliver consumer_tag='c' delivery_tag=2 redelivered=false exchange='' routing_key='s'\n"
    "a1<     headers={x-stream-offset: l1} body=b'one'"
)
_NO_OFFSET = (
    "a1< channel.close reply_code=406 reply_text='PRECONDITION_FAILED - invalid arg \\'x-stream-offset\\' for queue "
    "\\'s\\' in vhost \\'/\\': {invalid_stream_offset_arg,{longstr,<<\"foo\">>}}' class_id=60 method_id=20"
)
_NO_AGE = (
    "a1< channel.close reply_code=406 reply_text=\"PRECONDITION_FAILED - invalid arg 'x-max-age' "
    "for queue 's' in vhost '/': invalid_max_age\" class_id=50 method_id=10"
)

_PULLED = "redelivered=false exchange='' routing_key='q' message_count=0\na1<     expiration='060000'"
_EXPIRES_PLAINLY = "get-ok delivery_tag=2 " + _PULLED.replace("060000", "60000")
_RETURNED = (
    "a1< basic.return reply_code=312 reply_text='NO_ROUTE' exchange='x' routing_key=''\n"
    "a1<     headers={{{}}} body=b''\n"
)
_GOT = (
    "a1< basic.get-ok delivery_tag={} redelivered=false exchange='x' routing_key='' message_count={}\n"
    "a1<     headers={{{}}} body=b''\n"
)
_DOUBLE, _FLOAT = "a: d1.5, b: T1000, c: D(2, 314)", "a: f1.5, b: T1000, c: D(2, 314)"
_OTHER = "a: d1.5, b: T1000, c: D(2, 315)"
_PULLS = "a1> (pulls q empty)\n"
_TIMES_MATCH = _RETURNED.format(_OTHER) + _PULLS + _GOT.format(1, 1, _DOUBLE) + _GOT.format(2, 0, _FLOAT)
_TIMES_DO_NOT_MATCH = "".join(map(_RETURNED.format, (_DOUBLE, _FLOAT, _OTHER))) + _PULLS

DIFFERENCES = (
    Difference(
        "ANONYMOUS is offered",
        "RabbitMQ 4.0 offers it, and logs in the client as guest.",
        tuple(
            Change(scenario, "mechanisms={AMQPLAIN, PLAIN}", "mechanisms={AMQPLAIN, ANONYMOUS, PLAIN}")
            for scenario in (
                "a_connection_opens_and_closes",
                "the_header_of_amqp_0_9_means_0_9_1",
                "a_header_in_two_pieces_is_accepted",
            )
        ),
    ),
    Difference(
        "AMQP 0-8 is refused",
        "RabbitMQ 4.0 removed it.",
        (
            Change(
                "the_header_of_amqp_0_8_is_refused",
                "a0< connection.start version_major=8 version_minor=0 server_properties={capabilities: F{}, "
                "cluster_name: S<any>, copyright: S<any>, information: S<any>, platform: S<any>, "
                "product: S'RabbitMQ', version: S<any>} mechanisms={AMQPLAIN, PLAIN} locales='en_US'",
                r"a0< protocol header b'AMQP\x00\x00\t\x01'",
            ),
        ),
    ),
    Difference(
        "A body larger than announced is refused at once",
        "Newer versions of RabbitMQ answer 501; 3.10 waits for the next method and then answers 505.",
        tuple(
            Change(
                scenario,
                "reply_code=505 reply_text='UNEXPECTED_FRAME - expected content body, "
                "got non content body frame instead'",
                f"reply_code=501 reply_text='FRAME_ERROR - {text}'",
            )
            for scenario, text in (
                ("a_body_longer_than_announced_is_refused", "content body frame exceeds remaining content size"),
                (
                    "a_content_announced_larger_than_any_is_refused",
                    "content body size 536870913 exceeds maximum allowed size 536870912",
                ),
            )
        ),
    ),
    Difference(
        "A message has at most 16 MiB",
        "RabbitMQ 4.0 has lowered the default of max_message_size from 128 MiB.",
        (
            Change(
                "a_body_of_more_than_16_mebibytes_is_too_large",
                "a1< basic.qos-ok",
                "a1< channel.close reply_code=406 reply_text='PRECONDITION_FAILED - message size 16777217 "
                "is larger than configured max size 16777216' class_id=60 method_id=40",
            ),
        ),
    ),
    Difference(
        "A classic queue may have x-queue-leader-locator",
        "Accepted since RabbitMQ 4.0; 3.10 refuses it as an argument of other queue types.",
        (
            Change(
                "a_classic_queue_may_have_a_leader_locator",
                'a1< channel.close reply_code=406 reply_text="PRECONDITION_FAILED - '
                "invalid arg 'x-queue-leader-locator' for queue 'q' in vhost '/' "
                'of queue type rabbit_classic_queue" class_id=50 method_id=10',
                "a1< queue.declare-ok queue='q' message_count=0 consumer_count=0",
            ),
        ),
    ),
    Difference(
        "The type of a queue is among its arguments",
        "RabbitMQ 4.0 adds x-queue-type to the arguments of each declaration, and sorts them where it does.",
        (
            _first_refused("x-max-age", "x-delivery-limit"),
            _first_refused("x-quorum-initial-group-size", "x-dead-letter-strategy"),
            _type_differs(
                "a_quorum_queue_may_be_declared_again",
                "none but current is the value 'quorum' of type 'longstr'",
                "'classic' but current is 'quorum'",
            ),
            _type_differs(
                "a_classic_queue_is_not_a_quorum_queue",
                "the value 'quorum' of type 'longstr' but current is none",
                "'quorum' but current is 'classic'",
            ),
            _type_differs(
                "a_stream_may_be_declared_again",
                "none but current is the value 'stream' of type 'longstr'",
                "'classic' but current is 'stream'",
            ),
        ),
    ),
    Difference(
        "An unknown exchange type closes the channel",
        "RabbitMQ 3.13 and later: 406 for the channel; 3.10: 503 for the connection.",
        (
            _unknown_type("an_unknown_exchange_type_is_refused", "unknown exchange type 'nonsense'"),
            _unknown_type("the_type_of_an_exchange_is_checked_before_its_name", "unknown exchange type 'nonsense'"),
            _unknown_type(
                "an_unknown_type_is_refused_although_the_exchange_exists", "unknown exchange type 'nonsense'"
            ),
            _unknown_type("an_empty_exchange_type_is_unknown", "invalid exchange type ''"),
        ),
    ),
    Difference(
        "A float does not match an integer",
        "The headers exchange of RabbitMQ 4 compares with =:=, that of 3.10 with ==.",
        (
            Change(
                "a_whole_float_is_a_whole_number",
                "a1< basic.return reply_code=312 reply_text='NO_ROUTE' exchange='x' routing_key=''\n"
                "a1<     headers={a: d1.5} body=b''\n"
                "a1> (pulls q empty)\n"
                "a1< basic.get-ok delivery_tag=1 redelivered=false exchange='x' routing_key='' message_count=0\n"
                "a1<     headers={a: d1.0} body=b''\n",
                "a1< basic.return reply_code=312 reply_text='NO_ROUTE' exchange='x' routing_key=''\n"
                "a1<     headers={a: d1.0} body=b''\n"
                "a1< basic.return reply_code=312 reply_text='NO_ROUTE' exchange='x' routing_key=''\n"
                "a1<     headers={a: d1.5} body=b''\n"
                "a1> (pulls q empty)\n",
            ),
        ),
    ),
    Difference(
        "The expiration is checked before the user id",
        "RabbitMQ 4 checks the expiration, CC and BCC, and then the user id; 3.10 begins with the user id.",
        (
            Change(
                "of_several_wrong_properties_one_is_reported",
                "user_id property set to 'somebody' but authenticated user was 'guest'",
                "invalid expiration 'abc': no_integer",
            ),
        ),
    ),
    Difference(
        "An unknown delivery mode is accepted",
        "RabbitMQ 4 takes any other than 2 as transient; 3.10 refuses the message.",
        (
            Change(
                "a_delivery_mode_may_be_unknown",
                "a1< channel.close reply_code=406 reply_text='PRECONDITION_FAILED - invalid message: "
                "{delivery_mode_unknown,3}' class_id=60 method_id=40",
                "a1< basic.ack delivery_tag=1 multiple=false\na1> basic.get queue='q'\n"
                "a1< basic.get-ok delivery_tag=1 redelivered=false exchange='' routing_key='q' message_count=0\n"
                "a1<     delivery_mode=3 body=b'x'",
            ),
        ),
    ),
    Difference(
        "A dead letter has headers about its last death",
        "RabbitMQ has these headers since 3.13.",
        addition=Pattern(
            r"(?:, x-last-death-(?:exchange|queue|reason): S'[^']*'){3}", "a_rejected_message_is_dead_lettered"
        ),
    ),
    Difference(
        "Deaths are listed newest first",
        "3.10 reverses the order of the older deaths; newer versions keep the newest first.",
        (
            Change(
                "deaths_in_a_chain_of_queues_are_listed_newest_first",
                f"{_death_in('one', ORIGINAL_EXPIRATION)}, {_death_in('two')}",
                f"{_death_in('two')}, {_death_in('one', ORIGINAL_EXPIRATION)}",
            ),
        ),
    ),
    Difference(
        "A message from a quorum queue has a count only after a redelivery",
        "RabbitMQ 4 omits x-delivery-count where it would be 0, as in deliveries.",
        omission=Pattern(r"headers=\{x-delivery-count: l0\} ", "pulling_from_a_quorum_queue"),
    ),
    Difference(
        "Direct replies have delivery tags of their own",
        "RabbitMQ 4 counts them; before, each had the tag of the next delivery.",
        (
            Change(
                "the_name_to_answer_to_stays_while_the_consumer_does",
                f"{_REPLY.format(1)}\na1<     body=b'answer 2'",
                f"{_REPLY.format(2)}\na1<     body=b'answer 2'",
            ),
        ),
    ),
    Difference(
        "A mandatory direct reply is not returned",
        "RabbitMQ 4.2 counts it as routed; 3.10 returns it although it has delivered it.",
        (
            Change(
                "an_answer_may_be_mandatory",
                "b1< basic.return reply_code=312 reply_text='NO_ROUTE' exchange='' "
                "routing_key='amq.rabbitmq.reply-to-<1>'\nb1<     body=b'answer'\n",
                "",
            ),
        ),
    ),
    Difference(
        "The weight of a consistent hash binding is 10000 at most",
        "RabbitMQ has limited it since, in pull request 16118.",
        (
            Change(
                "a_weight_has_a_limit",
                "a1< queue.bind-ok",
                "a1< channel.close reply_code=406 reply_text='PRECONDITION_FAILED - "
                "The binding key must not exceed 10000' class_id=50 method_id=20",
            ),
        ),
    ),
    Difference(
        "Error texts name streams",
        "RabbitMQ 4 says 'stream queue'; 3.10 says 'queue' or 'stream queues queue'.",
        (
            Change("a_reader_has_a_prefetch", "'queue 's' in vhost '/''", "stream queue 's' in vhost '/'"),
            Change(
                "a_stream_knows_no_prefetch_of_a_channel", "'queue 's' in vhost '/''", "stream queue 's' in vhost '/'"
            ),
            Change("a_reader_acknowledges", "supported by stream queues queue 's'", "supported by stream queue 's'"),
        ),
    ),
    Difference(
        "A nack to a stream is credit",
        "RabbitMQ 4 does the same; 3.10 refuses basic.nack and basic.reject, and crashes on basic.recover.",
        (
            Change("a_nack_of_a_stream_delivery_is_credit", f"{_no_nack(120)}\n{_END}", _SECOND_OF_A_STREAM),
            Change("a_reject_of_a_stream_delivery_is_credit", f"{_no_nack(90)}\n{_END}", _SECOND_OF_A_STREAM),
            Change(
                "what_is_recovered_is_not_delivered_again",
                _CRASH,
                "a1< basic.recover-ok\n"
                "a1< basic.deliver consumer_tag='c' delivery_tag=3 redelivered=false exchange='' routing_key='s'\n"
                "a1<     headers={x-stream-offset: l2} body=b'two'",
            ),
        ),
    ),
    Difference(
        "A stream keeps the header CC",
        "RabbitMQ 4 does the same; 3.10 removes it along with BCC.",
        (
            Change(
                "a_reader_receives_the_header_cc",
                "headers={x-stream-offset: l0} body=b'cc'",
                "headers={CC: A[S's'], x-stream-offset: l0} body=b'cc'",
            ),
        ),
    ),
    Difference(
        "Headers are sorted",
        "RabbitMQ 4 writes the properties of each delivery anew: keys sorted, each once, and plain expirations.",
        (
            Change("expirations_that_are_numbers_are_accepted", "get-ok delivery_tag=2 " + _PULLED, _EXPIRES_PLAINLY),
            Change(
                "expirations_that_are_numbers_are_accepted", "a1<     expiration='+60000'", "a1<     expiration='60000'"
            ),
            Change("an_expiration_may_have_a_sign_and_zeros", "S'+020'", "S'20'"),
        ),
        rewrite=Rewrite(
            r"(?<=\n)(\w+< [^\n]*)headers=\{([^{}()\n]+)\}", _sorted_headers, "header_keys_come_back_in_their_order"
        ),
    ),
    Difference(
        "Headers exchanges see the last value of a key, and times in milliseconds",
        "RabbitMQ 4 routes by a map of the headers, with times in milliseconds.",
        (
            Change(
                "a_header_given_twice",
                "routing_key=''\na1<     headers={a: I2} body=b''\na1> (pulls q empty)\n"
                "a1< basic.get-ok delivery_tag=1 redelivered=false exchange='x' routing_key='' message_count=0\n"
                "a1<     headers={a: I1} body",
                "routing_key=''\na1<     headers={a: I1} body=b''\na1> (pulls q empty)\n"
                "a1< basic.get-ok delivery_tag=1 redelivered=false exchange='x' routing_key='' message_count=0\n"
                "a1<     headers={a: I2} body",
            ),
            Change("floats_and_times_match", _TIMES_MATCH, _TIMES_DO_NOT_MATCH),
        ),
    ),
    Difference(
        "Streams deliver a delivery mode",
        "RabbitMQ 4 stores messages of streams in the format of AMQP 1.0, which says whether they are durable.",
        rewrite=Rewrite(
            r"(headers=\{[^\n]*x-stream-offset: l\d+[^\n]*?\}) body=",
            r"\1 delivery_mode=1 body=",
            "a_delivery_has_its_offset",
        ),
    ),
    Difference(
        "A dead letter keeps the header CC",
        "RabbitMQ 4 keeps it with x-dead-letter-routing-key, too, although its keys count no longer.",
        (
            _without_copies("a_dead_letter_routing_key_takes_the_copies_away", "cc"),
            _without_copies("a_copy_dies_in_the_queue_of_its_cc", "two"),
        ),
    ),
    Difference(
        "The length of a stream is exact at once",
        "RabbitMQ counts the messages of streams every few seconds.",
        (Change("a_stream_is_deleted_whatever_is_in_it", "message_count=0 consumer", "message_count=2 consumer"),),
    ),
    Difference(
        "A wrong offset or age closes the channel",
        "RabbitMQ's channel crashes on some of them, and the connection with it.",
        (
            Change("an_age_without_a_number_is_refused", _CRASH, _NO_AGE),
            Change("an_invalid_offset_is_refused", _CRASH, _NO_OFFSET),
        ),
    ),
    Difference(
        "A wrong type of hash-header closes the channel",
        "RabbitMQ's channel crashes, and the connection with it.",
        (
            Change(
                "what_to_hash_is_named_by_a_string",
                _CRASH,
                "a1< channel.close reply_code=406 reply_text=\"PRECONDITION_FAILED - invalid type 'signedint' "
                "for arg 'hash-header' in exchange 'x' in vhost '/'\" class_id=40 method_id=10",
            ),
        ),
    ),
    Difference(
        "An exchange without queues may be bound to a history",
        "RabbitMQ's channel crashes when the history finds no queue, and the connection with it.",
        (Change("an_exchange_that_is_bound_has_no_queue_for_the_history", _CRASH, "a1< exchange.bind-ok"),),
    ),
    Difference(
        "Long Erlang terms are not wrapped",
        "RabbitMQ breaks a term that reaches column 80 of a reply text; amqp-broker keeps it on its line.",
        (
            Change(
                "a_long_erlang_term_in_a_reply_text_is_wrapped",
                r"{value_too_large,\n                                            99999999999999999999}",
                "{value_too_large,99999999999999999999}",
            ),
        ),
    ),
)
