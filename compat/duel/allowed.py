"""Differences that may stay, about which a user would say: rightly so. Each is removed from the lines of a window."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pamqp.commands import Basic, Queue

from amqp_broker.conformance.duel.http_steps import PERMISSIONS, USER
from amqp_broker.conformance.duel.steps import Call, Http, Program


@dataclass(frozen=True)
class Allowed:
    """A part of a line that may differ, as a regular expression, and its replacement."""

    reason: str
    pattern: re.Pattern[str]
    replacement: str
    # Profiles of amqp-broker; an empty tuple stands for all.
    profiles: tuple[str, ...] = ()


# Headers of dead letters and of quorum queues, which RabbitMQ 3.10 does not have or has always.
_LATER_HEADERS = re.compile(
    r"(?:x-(?:first|last)-death-\w+: S'[^']*'|x-delivery-count: l0)(?:, )?|, (?=\})|(?<=\{), |headers=\{\} "
)

ALLOWED = (
    Allowed(
        "Debian's package of RabbitMQ 4.3 permits transient queues, so the oracle refuses them by its configuration; "
        "the text names the configuration.",
        re.compile(r"(Feature `\w+` is deprecated\.).*'"),
        r"\1'",
    ),
    Allowed(
        "A dead letter has headers about its last death, as in RabbitMQ 3.13; a message from a quorum queue has a "
        "count only after a redelivery, as in RabbitMQ 4.",
        _LATER_HEADERS,
        "",
        profiles=("3.13",),
    ),
    Allowed(
        "The reply text names a stream queue, as in RabbitMQ 4.",
        re.compile(r"is not set for (?:'queue|stream queue) ('\w+' in vhost '/')'?"),
        r"is not set for \1",
        profiles=("3.13",),
    ),
    Allowed(
        "The reply text names the queue once, as in RabbitMQ 4.",
        re.compile(r"stream queues queue"),
        "stream queue",
        profiles=("3.13",),
    ),
    Allowed(
        "The offset stands behind all other headers; clients read headers by their names.",
        re.compile(r", x-stream-offset: l\d+(?=\})|x-stream-offset: l\d+, "),
        "",
    ),
    Allowed(
        "A stream keeps the header CC, as in RabbitMQ 4.",
        re.compile(r"CC: A\[[^]]*\](?:, )?(?=.*\bx-stream-offset: )"),
        "",
        profiles=("3.13",),
    ),
)


def normalized(line: str, profile: str) -> str:
    """Return a line without what may differ."""
    for allowed in ALLOWED:
        if not allowed.profiles or profile in allowed.profiles:
            former = ""
            # A comma is left over when the entry behind it is gone.
            while line != former:
                former, line = line, allowed.pattern.sub(allowed.replacement, line)
    return line


def is_allowed(program: Program, theirs: Sequence[str], ours: Sequence[str], profile: str) -> bool:
    """Return whether the first difference of a program may stay. Its consequences are not compared."""
    return (
        _is_stranded(program, theirs, ours)
        or _is_remembered(program, theirs, ours)
        or _is_behind_close(theirs, ours)
        or _is_crash(theirs, ours)
        or (profile == "3.13" and (_is_former(theirs) or _is_overtaken(program, theirs, ours)))
    )


# Texts of RabbitMQ 3.10 where 3.13 answers otherwise: an unknown exchange type closes only the channel, and policies
# apply to types of queues.
_FORMER = re.compile(r"COMMAND_INVALID - (?:unknown|invalid) exchange type|apply-to '\w+' unrecognised")


def _is_former(theirs: Sequence[str]) -> bool:
    """Return whether RabbitMQ 3.10 answers as 3.13 does not."""
    return any(_FORMER.search(line) for line in theirs)


def _is_overtaken(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether the same messages arrive in another order, among them dead letters.

    In RabbitMQ 3.10, a dead letter overtakes the message that causes it on their way to the same quorum queue.
    """
    has_quorum = any(
        isinstance(step, Call) and step.fields.get("arguments", {}).get("x-queue-type") == "quorum" for step in program
    )
    messages = [sorted(line for line in lines if " body=" in line) for lines in (theirs, ours)]
    return has_quorum and messages[0] == messages[1] and any("x-death" in line for line in messages[0])


def _is_crash(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether only RabbitMQ closes a connection because of an error of its own.

    It does so, for example, if a channel that knows a queue uses another queue of the same name and another type.
    """
    return any("INTERNAL_ERROR" in line and line not in ours for line in theirs)


def _is_behind_close(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether only RabbitMQ delivers messages behind the error that closes their channel.

    Its classic queues learn one after the other that a channel has ended, the youngest first. Messages that return to
    one may be dead-lettered to an older one, which still delivers them to the same channel.
    """
    closed: set[str] = set()
    for line in theirs:
        channel, method, *_ = line.split()
        if method == "channel.close":
            closed.add(channel)
        elif method == "basic.deliver" and channel in closed and line not in ours:
            return True
    return False


def _is_remembered(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether only this broker refuses what the user was permitted before.

    A channel of RabbitMQ remembers what it was permitted until it has rested for a second or more.
    """
    user = USER.removeprefix("{prefix}")
    has_changed = any(isinstance(step, Http) and step.path == PERMISSIONS for step in program)
    refused = [line for line in ours if "ACCESS_REFUSED" in line and f"refused for user '{user}'" in line]
    return has_changed and any(line not in theirs for line in refused)


def _is_stranded(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether RabbitMQ keeps messages for ever that this broker delivers, or has ready.

    In a quorum queue of RabbitMQ 4.3, a consumer of higher priority waits for the single active one to settle its
    messages. If it leaves, and the active one ends with its connection, that one's messages stay with it, and the queue
    delivers nothing any more.
    """
    calls = [step for step in program if isinstance(step, Call)]
    queues = {
        call.fields["queue"]
        for call in calls
        if call.method is Queue.Declare
        and call.fields.get("arguments", {}).get("x-queue-type") == "quorum"
        and call.fields["arguments"].get("x-single-active-consumer") is True
    }
    has_waiting = any(
        call.method is Basic.Consume
        and call.fields["queue"] in queues
        and call.fields.get("arguments", {}).get("x-priority") == 1
        for call in calls
    )
    missing = [line for line in theirs if line not in ours]
    return has_waiting and bool(missing) and all(re.match(r"q\d: 0 ready, 1 consumers$", line) for line in missing)
