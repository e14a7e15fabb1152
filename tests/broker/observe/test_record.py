from __future__ import annotations

import json
import struct

from amqp_broker.amqp.message import Address, NumberedMessage
from amqp_broker.broker.observe.record import CONTENT_BYTES_MAX, EVENTS_MAX, Record
from amqp_broker.broker.queues.queue_trace import Run

HERE, THERE = Address("", "here"), Address("amq.topic", "there")


def test_a_record_has_a_row_per_run_and_lists_what_is_not_alike() -> None:
    record = Record()
    deliver, confirm = record.new_place(("deliver", 1), {"queue": "q"}), record.new_place(("confirm", 2), {})
    alike = Run(1, 1000, deliver, HERE, 7, 0)
    alike.following += 1
    alike.sizes = [bytes([0] * 7 + [4])] * 2
    unlike = Run(2, 1000, deliver, THERE, 9, 0)
    unlike.take(NumberedMessage(THERE, b"", 1, False, 12))
    unlike.sizes = [bytes([0] * 7 + [size]) for size in (5, 6)]
    confirms = Run(3, 2000, confirm, HERE, 7, 21)
    confirms.following += 2
    # Publishes would come first.
    record.others += [unlike, confirms]
    record.publishes += [alike]
    record.contents += [b"first", b"second"]
    head = json.dumps(
        {
            "node": "n",
            "places": [{"event": "deliver", "queue": "q"}, {"event": "confirm"}],
            "addresses": [["", "here"], ["amq.topic", "there"]],
        },
        separators=(",", ":"),
    ).encode()
    listed = 2**64 - 1
    assert record.events == 7
    assert record.encode({"node": "n"}) == (
        b"ATR2"
        + struct.pack(">III", len(head), 3, 7)
        + head
        + struct.pack(">qQQIII", 1000, 7, 4, 0, 0, 2)
        + struct.pack(">qQQIII", 1000, listed, listed, 0, 1, 2)
        + struct.pack(">qQQIII", 2000, 7, 21, 1, 0, 3)
        + struct.pack(">QQQQ", 9, 12, 5, 6)
        + b"firstsecond"
    )


def test_a_record_has_room_until_its_contents_or_its_events_reach_a_limit() -> None:
    record = Record()
    record.contents += [bytes(CONTENT_BYTES_MAX - 1)]
    record.end_turn()
    assert record.has_room()
    record.contents += [b"1"]
    record.end_turn()
    assert not record.has_room()
    record = Record()
    run = Run(1, 0, 0, HERE, 1, 0)
    run.following = EVENTS_MAX
    record.publishes.append(run)
    record.end_turn()
    assert record.has_room()
    record.others.append(Run(2, 0, 0, HERE, 1, 0))
    record.end_turn()
    assert not record.has_room()


def test_a_record_that_was_written_frees_the_lists_of_its_runs() -> None:
    record = Record()
    run = Run(1, 0, 0, HERE, 1, 0)
    run.take(NumberedMessage(HERE, b"", 1, False, 5))
    run.sizes = [bytes(8), bytes(8)]
    record.others.append(run)
    record.encode({})
    record.release()
    lists: list[object] = [run.numbers, run.sizes]
    assert lists == [None, None]
