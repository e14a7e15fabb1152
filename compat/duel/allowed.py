"""Differences that may stay, about which a user would say: rightly so. Each is removed from the lines of a window."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pamqp.commands import Basic, Queue

from amqp_broker.conformance.duel.http_steps import PERMISSIONS, USER
from amqp_broker.conformance.duel.steps import Call, Http, Program, Publish


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
    r"(?:x-(?:first|last)-death-\w+: S'[^']*'|x-delivery-count: l0|\"x-delivery-count\": 0)(?:, )?"
    r"|, (?=\})|(?<=\{), |headers=\{\} "
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
        "A message of a quorum queue that had no headers has none without that count.",
        re.compile(r'(?<="properties": \{)"headers": \{\}(?:, )?|, "headers": \{\}'),
        "",
        profiles=("3.13",),
    ),
    Allowed(
        "No properties over HTTP are an object, as in RabbitMQ 4.",
        re.compile(r'"properties": \[\]'),
        '"properties": {}',
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
        "A stream keeps the header CC, as in RabbitMQ 4.",
        re.compile(r"CC: A\[[^]]*\](?:, )?(?=.*\bx-stream-offset: )"),
        "",
        profiles=("3.13",),
    ),
    Allowed(
        "The offset stands behind all other headers; clients read headers by their names.",
        re.compile(r", x-stream-offset: l\d+(?=\})|x-stream-offset: l\d+, "),
        "",
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
        or _is_held_once_more(theirs, ours)
        or _is_crash(theirs, ours)
        or _is_raced(program, theirs, ours)
        or _is_noticed_late(program, theirs, ours)
        or _is_unnoticed(program, theirs, ours)
        or _is_dealt_otherwise(theirs, ours)
        or _is_first_elsewhere(program, theirs, ours)
        or _is_cyclic(theirs, ours)
        or (
            profile == "3.13"
            and (
                _is_former(theirs, ours)
                or _is_overtaken(program, theirs, ours)
                or _is_sorted(program, theirs, ours)
                or _is_credited_twice(program, theirs, ours)
                or _has_history(program, theirs, ours)
                or _is_read_from_disk(program, theirs, ours)
            )
        )
    )


# Texts of RabbitMQ 3.10 where 3.13 answers otherwise: an unknown exchange type closes only the channel, policies apply
# to types of queues, operators may set the overflow, and a message of a stream may be nacked.
_FORMER = re.compile(
    r"COMMAND_INVALID - (?:unknown|invalid) exchange type|apply-to '\w+' unrecognised"
    r"|are not recognised policy settings|basic.nack and basic.reject not supported by stream"
)


def _is_former(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether RabbitMQ 3.10 answers as 3.13 does not.

    It delivers no dead letter from a stream, since the header x-death is an array.
    """
    is_dead_in_stream = any("'reader'" in line for line in ours) and any("x-death" in line for line in ours)
    has_closed = any("unknown exchange type" in line for line in ours)
    return has_closed or is_dead_in_stream or any(_FORMER.search(line) for line in theirs)


def _is_overtaken(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether the same messages arrive in another order, among them dead letters.

    In RabbitMQ 3.10, a dead letter overtakes the message that causes it on their way to the same quorum queue.
    """
    messages = [_messages(lines) for lines in (theirs, ours)]
    is_same = sorted(messages[0]) == sorted(messages[1])
    return _has_queue(program, "quorum") and is_same and any("x-death" in line for line in messages[0])


def _is_sorted(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether headers stand in another order.

    RabbitMQ 3.10 sorts those to which a quorum queue adds a count. This broker sorts those of a stream, as RabbitMQ 4.
    """
    pairs = [pair for pair in zip(theirs, ours, strict=False) if pair[0] != pair[1]]
    return (
        (_has_queue(program, "quorum") or _has_queue(program, "stream"))
        and len(theirs) == len(ours)
        and all("headers={" in there and _words(there) == _words(here) for there, here in pairs)
    )


def _words(line: str) -> list[str]:
    return sorted(re.split(r"[ ,{}]+", line))


def _is_credited_twice(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether only RabbitMQ delivers more than the prefetch of a consumer.

    3.10 credits a consumer twice for a message that exceeds the delivery limit of its quorum queue. Here the
    messages that it delivers are ready, or dropped because of a maximum length.
    """
    has_limit = any("delivery-limit" in str(step) for step in program)
    has_length = any("max-length" in str(step) for step in program)
    delivered = [sum(" basic.deliver " in line for line in lines) for lines in (theirs, ours)]
    ready = [sum(int(one[2]) for line in lines if (one := _READY.match(line))) for lines in (theirs, ours)]
    more, kept = delivered[0] - delivered[1], ready[1] - ready[0]
    return has_limit and more > 0 and (kept == more or (has_length and 0 <= kept < more))


def _has_history(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether only streams of this broker get the history that they are bound to, as in RabbitMQ 4."""
    is_bound = _has_queue(program, "stream") and any("x-recent-history" in str(step) for step in program)
    added = [line for line in ours if "x-stream-offset" in line]
    return is_bound and len(added) > sum("x-stream-offset" in line for line in theirs) and set(theirs) <= set(ours)


# Of a dead letter, its expiration in the queue where it died.
_EXPIRATION = re.compile(r"original-expiration: S'[^']*', ")


def _is_read_from_disk(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether dead letters of a lazy queue lack their former expiration.

    RabbitMQ 3.10 forgets it for messages that it has read from the disk.
    """
    return (
        _has_argument(program, "x-queue-mode", "lazy")
        and len(theirs) == len(ours)
        and all(there in (here, _EXPIRATION.sub("", here)) for here, there in zip(ours, theirs, strict=True))
    )


def _has_queue(program: Program, queue_type: str) -> bool:
    """Return whether a program declares a queue of a type."""
    return _has_argument(program, "x-queue-type", queue_type)


def _has_argument(program: Program, name: str, value: str) -> bool:
    """Return whether a program declares a queue with an argument."""
    return any(isinstance(step, Call) and step.fields.get("arguments", {}).get(name) == value for step in program)


def _is_raced(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether a message that was published with copies and a dead letter arrive in another order.

    The channel sends the message to a queue of which the process dead-letters at once, and the copy to the next queue,
    where either arrives first.
    """
    pairs = zip(_messages(theirs), _messages(ours), strict=False)
    displaced = [(there, here) for there, here in pairs if ("x-death: " in there) != ("x-death: " in here)]
    has_bcc = any(isinstance(step, Publish) and "BCC" in str(step.options) for step in program)
    is_copied = has_bcc or any("CC: A[" in there + here for there, here in displaced)
    return bool(displaced) and is_copied and sorted(_bodies(theirs)) == sorted(_bodies(ours))


def _messages(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if " body=" in line]


def _bodies(lines: Sequence[str]) -> list[str]:
    return [message.rpartition(" body=")[2] for message in _messages(lines)]


_CRASH = re.compile("INTERNAL_ERROR")


def _is_crash(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether only RabbitMQ closes a connection because of an error of its own.

    It does so, for example, if a channel that knows a queue uses another queue of the same name and another type.
    """
    return any(_CRASH.search(line) and line not in ours for line in theirs)


# The marks of a delivery.
_DELIVERED = re.compile(r"redelivered=\w+|x-(?:delivery|acquired)-count: l\d+(?:, )?|, (?=\})")


def _is_held_once_more(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether only RabbitMQ has delivered dead letters to a channel that had ended.

    As in `_is_behind_close`, with a quorum queue that learns late that its consumer has gone.
    """
    pairs = [(there, here) for there, here in zip(theirs, ours, strict=False) if there != here]
    is_same = len(theirs) == len(ours) and all(
        _DELIVERED.sub("", there) == _DELIVERED.sub("", here) for there, here in pairs
    )
    return is_same and any("x-death" in there and "x-delivery-count: " in there for there, _ in pairs)


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


def _is_noticed_late(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether only this broker cancels a consumer for a further late message.

    A quorum queue of RabbitMQ 4.3.6 that has cancelled a consumer sees later messages of the same consumer time out
    only when the queue is used again.
    """
    has_timeout = any(
        isinstance(step, Call) and "x-consumer-timeout" in step.fields.get("arguments", {}) for step in program
    )
    cancels = [sum(line.split()[1] == "basic.cancel" for line in lines) for lines in (theirs, ours)]
    return has_timeout and cancels[0] < cancels[1]


def _is_dealt_otherwise(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether several consumers of a channel get the same messages, each another one.

    A quorum queue of RabbitMQ chooses consumers in the order in which it sees their acknowledgements, and sends what it
    has chosen for several consumers in any order.
    """
    methods = [[line for line in lines if " body=" not in line] for lines in (theirs, ours)]
    tags = [[tag for line in lines for tag in _CONSUMER.findall(line)] for lines in methods]
    has_several = len(set(tags[0])) > 1 and sorted(tags[0]) == sorted(tags[1])
    is_same = [_CONSUMER.sub("", line) for line in methods[0]] == [_CONSUMER.sub("", line) for line in methods[1]]
    return has_several and is_same and sorted(_messages(theirs)) == sorted(_messages(ours))


_CONSUMER = re.compile(r"consumer_tag='[^']*'")


def _is_first_elsewhere(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether another queue was first with a copy of a message.

    A channel with one limit for all of its consumers takes the copy that comes first.
    """
    has_limit = any(
        isinstance(step, Call) and step.method is Basic.Qos and "global_" in step.fields for step in program
    )
    ready = [sum(int(one[2]) for line in lines if (one := _READY.match(line))) for lines in (theirs, ours)]
    bodies = [sorted(_bodies(lines)) for lines in (theirs, ours)]
    return has_limit and bool(bodies[0]) and bodies[0] == bodies[1] and ready[0] == ready[1]


def _is_cyclic(theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether messages have gone round a cycle of queues, or are elsewhere.

    The processes of several queues race with each other in RabbitMQ. A message that was not rejected goes round no
    cycle. One that dies of rejections alone dies once in a step, so that its deaths are in order. The first death of
    all is the same.
    """
    differing = [line for lines, others in ((theirs, ours), (ours, theirs)) for line in lines if line not in others]
    several = [line for line in differing if _SEVERAL_DEATHS.search(line)]
    is_elsewhere = _bodies(theirs) != _bodies(ours)
    is_first_same = _FIRST_DEATH.findall("".join(theirs)) == _FIRST_DEATH.findall("".join(ours))
    has_gone_round = is_first_same and all(map(_is_round, several))
    is_dead = all("x-death" in line or " body=" not in line for line in differing)
    return bool(several) and is_dead and (is_elsewhere or has_gone_round)


def _is_round(line: str) -> bool:
    """Return whether a message has died of a rejection and by itself."""
    return "reason: S'rejected'" in line and _DEATH_BY_ITSELF.search(line) is not None


_SEVERAL_DEATHS = re.compile(r"count: l(?!1\b)\d+|time: T<now>}, F\{")
_FIRST_DEATH = re.compile(r"x-first-death-\w+: S'[^']*'")
_DEATH_BY_ITSELF = re.compile(r"reason: S'(?:expired|maxlen|delivery_limit)'")
_READY = re.compile(r"(q\d): (\d+) ready")


def _is_unnoticed(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether only RabbitMQ still has a message in a priority queue that has expired.

    Its classic queues look at a new message only if there is no other one, or if one is dropped: a message of higher
    priority than those that wait stays until the queue is used again (rabbit_amqqueue_process.erl, deliver_or_enqueue).
    """
    has_priorities = any(isinstance(step, Call) and "x-max-priority" in str(step.fields) for step in program)
    ready = [{one[1]: int(one[2]) for line in lines if (one := _READY.match(line))} for lines in (theirs, ours)]
    return has_priorities and any(count > ready[1].get(queue, count) for queue, count in ready[0].items())


def _is_remembered(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether only this broker refuses what the user was permitted before.

    A channel of RabbitMQ remembers what it was permitted until it has rested for a second or more. It may refuse a
    later check of the same method, but a passive declaration is a single check.
    """
    has_changed = any(isinstance(step, Http) and step.path == PERMISSIONS for step in program)
    refused, theirs_refused = _refusals(ours), _refusals(theirs)
    is_passive = isinstance(program[-1], Call) and bool(program[-1].fields.get("passive"))
    is_refused_otherwise = is_passive and bool(theirs_refused)
    return has_changed and not is_refused_otherwise and any(line not in theirs_refused for line in refused)


def _refusals(lines: Sequence[str]) -> list[str]:
    """Return the lines that refuse something to the user whose permissions change."""
    text = f"refused for user '{USER.removeprefix('{prefix}')}'"
    return [line for line in lines if "ACCESS_REFUSED" in line and text in line]


def _is_stranded(program: Program, theirs: Sequence[str], ours: Sequence[str]) -> bool:
    """Return whether RabbitMQ keeps messages for ever that this broker delivers, or has ready.

    In a quorum queue of RabbitMQ 4, a consumer of higher priority waits for the single active one to settle its
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
        and "x-priority" in call.fields.get("arguments", {})
        for call in calls
    )
    missing = [line for line in theirs if line not in ours]
    return has_waiting and bool(missing) and all(re.match(r"q\d: 0 ready, 1 consumers$", line) for line in missing)
