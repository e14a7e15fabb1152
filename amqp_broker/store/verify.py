"""The check of a whole store: every page, every definition, every message."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from amqp_broker.amqp.message import CONTENT, FRAME, FRAME_BODY, FRAME_END, FRAME_HEADER, Message
from amqp_broker.broker.durability.journal import RangeState
from amqp_broker.store import chunks, codec
from amqp_broker.store.contents import Contents
from amqp_broker.store.environment import NUMBER, POSITION, Environment, ReadOnlyEnvironment, described
from amqp_broker.store.journal import STATE
from amqp_broker.store.seal import DamagedRecord, unseal

OnProgress: TypeAlias = Callable[[int, int], object]


# Unreadable messages of a queue that are listed.
LISTED_MAX: Final = 1000


@dataclass
class Verdict:
    """Numbers of checked pages, queues and messages, and a sentence for each problem."""

    pages: int
    queues: int
    messages: int
    problems: list[str]


@dataclass
class Found:
    """Messages that were found in a range."""

    message_count: int = 0
    body_bytes: int = 0
    position_min: int = 0
    position_max: int = -1
    is_stream: bool = False
    # Number of unreadable messages, and the problems of the first ones.
    unreadable: int = 0
    unreadable_first: list[str] = field(default_factory=list)


def verify(folder: Path, on_progress: OnProgress = lambda done, total: None) -> Verdict:
    """Check a store that no broker uses; report progress in pages, then in messages. Raise StoreError."""
    walked = 0

    def on_page(total: int) -> None:
        nonlocal walked
        walked += 1
        on_progress(walked, total)

    environment = ReadOnlyEnvironment(folder, is_alone=True, on_page=on_page)
    try:
        contents = Contents(environment)
        garbage, problems = garbage_of(environment)
        found = read_messages(environment, contents, garbage, on_progress)
        read_chunks(environment, garbage, found)
        problems = contents.problems + problems + _compare(environment, contents, found)
        queues = sum(len(vhost.queues) for vhost in contents.broker.vhosts.values())
        messages = sum(one.message_count for one in found.values())
        return Verdict(environment.survey.page_count, queues, messages, problems)
    finally:
        environment.close()


def rows(environment: Environment, table: str) -> Iterator[tuple[bytes, bytes]]:
    with environment.lmdb.begin() as txn, txn.cursor(environment.tables[table]) as cursor:
        yield from cursor


def _unsealed(environment: Environment, table: str, problems: list[str]) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and records of a small table; note those that are damaged."""
    for key, sealed in rows(environment, table):
        try:
            yield key, bytes(unseal(key, sealed))
        except DamagedRecord:
            problems.append(f"{described(table, key)}.")


def garbage_of(environment: Environment) -> tuple[dict[int, list[tuple[int, int]]], list[str]]:
    """Return the positions (first, end) to delete by range, ascending, and the problems of their table."""
    garbage: dict[int, list[tuple[int, int]]] = {}
    problems: list[str] = []
    for key, value in _unsealed(environment, "garbage", problems):
        if len(key) != POSITION.size or len(value) != NUMBER.size:
            problems.append("an entry of the garbage table cannot be read.")
            continue
        range_id, start = POSITION.unpack(key)
        garbage.setdefault(range_id, []).append((start, NUMBER.unpack(value)[0]))
    return garbage, problems


def is_garbage(parts: list[tuple[int, int]], position: int) -> bool:
    """Return whether a position is in one of the parts that are to be deleted."""
    index = bisect_right(parts, position, key=lambda part: part[0])
    return any(position < end for _, end in parts[:index])


def read_messages(
    environment: Environment,
    contents: Contents,
    garbage: dict[int, list[tuple[int, int]]],
    on_progress: OnProgress = lambda done, total: None,
) -> dict[int, Found]:
    """Return what each range has, without garbage and messages that a restart drops."""
    found: dict[int, Found] = {}
    decode = codec.Decoder().decode
    with environment.lmdb.begin() as txn:
        total = txn.stat(environment.tables["messages"])["entries"]
    for done, (key, record) in enumerate(rows(environment, "messages"), 1):
        on_progress(done, total)
        if len(key) != POSITION.size:
            _note(found.setdefault(-1, Found()), "its key has another size")
            continue
        range_id, position = POSITION.unpack(key)
        if range_id in garbage and is_garbage(garbage[range_id], position):
            continue
        one = found.setdefault(range_id, Found())
        try:
            message = decode(unseal(key, record)).message
            check_content(message)
        except Exception as error:
            _note(one, f"at position {position}: {error}")
            continue
        keeps = contents.ranges[range_id][1] if range_id in contents.ranges else None
        if keeps is None or keeps(message):
            one.position_min = one.position_min if one.message_count else position
            one.message_count += 1
            one.body_bytes += message.body_bytes
            one.position_max = position
    return found


def read_chunks(environment: Environment, garbage: dict[int, list[tuple[int, int]]], found: dict[int, Found]) -> None:
    """Add what each stream has to `found`."""
    for key, record in rows(environment, "chunks"):
        if len(key) != POSITION.size:
            _note(found.setdefault(-1, Found()), "its key has another size")
            continue
        range_id, first = POSITION.unpack(key)
        if range_id in garbage and is_garbage(garbage[range_id], first):
            continue
        one = found.setdefault(range_id, Found())
        try:
            if one.message_count and first != one.position_max + 1:
                raise ValueError(f"the offsets from {one.position_max + 1} on are missing")
            chunk = chunks.decode(first, unseal(key, record))
            for message in chunk.messages:
                check_content(message)
        except Exception as error:
            _note(one, f"at offset {first}: {error}")
            continue
        one.is_stream = True
        one.position_min = one.position_min if one.message_count else first
        one.message_count += chunk.head.message_count
        one.body_bytes += chunk.head.content_bytes
        one.position_max = chunk.head.end - 1


def _note(one: Found, problem: str) -> None:
    one.unreadable += 1
    if len(one.unreadable_first) < LISTED_MAX:
        one.unreadable_first.append(problem)


def check_content(message: Message) -> None:
    """Raise ValueError if a message has invalid frames, or a body of another size than its header says."""
    content, at, body_bytes = message.content, 0, 0
    while at < len(content):
        if len(content) < at + FRAME.size:
            raise ValueError("a frame is cut short")
        kind, _, size = FRAME.unpack_from(content, at)
        end = at + FRAME.size + size
        if kind != (FRAME_BODY if at else FRAME_HEADER) or end >= len(content) or content[end] != FRAME_END:
            raise ValueError("its frames are invalid")
        if at:
            body_bytes += size
        elif size <= CONTENT.size:
            raise ValueError("its header is cut short")
        at = end + 1
    if not at or body_bytes != message.body_bytes:
        raise ValueError("its body has another size than its header says")


def states_of(environment: Environment) -> tuple[dict[int, RangeState], list[str]]:
    """Return the states of all ranges, and the problems of their table."""
    problems: list[str] = []
    states: dict[int, RangeState] = {}
    for key, value in _unsealed(environment, "windows", problems):
        if len(key) != NUMBER.size or len(value) != STATE.size:
            problems.append("the state of a queue cannot be read.")
            continue
        states[NUMBER.unpack(key)[0]] = RangeState(*STATE.unpack(value))
    return states, problems


def is_transient(state: RangeState) -> bool:
    """Return whether a range without an owner was used, and counts nothing that a restart finds.

    It has the messages that a transient queue had paged out. The next broker deletes them.
    """
    return state.next > 0 and not state.message_count


def _compare(environment: Environment, contents: Contents, found: dict[int, Found]) -> list[str]:
    """Compare the states of all ranges with what was found in them; return the problems."""
    states, problems = states_of(environment)
    for range_id in sorted(states.keys() | found.keys()):
        state, one = states.get(range_id, RangeState()), found.get(range_id, Found())
        if range_id not in contents.ranges:
            if is_transient(state):
                continue
            problems.append(
                f"range {range_id} has {one.message_count + one.unreadable} messages and belongs to nothing."
            )
            continue
        owner = contents.ranges[range_id][0]
        if one.unreadable:
            listed = "; ".join(one.unreadable_first)
            problems.append(f"{owner} has {one.unreadable} messages that cannot be read, {listed}.")
        if (one.message_count + one.unreadable, one.body_bytes) != state[2:] and not one.unreadable:
            problems.append(
                f"{owner} has {one.message_count} messages of {one.body_bytes} octets, "
                f"and counts {state.message_count} of {state.body_bytes}."
            )
        if state.head > state.next or one.position_max >= state.next:
            problems.append(f"{owner} has messages at positions that it will give to others.")
    return problems
