"""A server advances its clock while clients are connected."""

from __future__ import annotations

import itertools
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands
from pamqp.common import FieldTable

from amqp_broker.broker.scheduling.timers import LATEST_MS
from amqp_broker.server.server import Server
from tests.client import PROTOCOL_HEADER, Client
from tests.running import RunningServer

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
YEARS_MS = 100 * 365 * 24 * HOUR_MS


def dead_letters_to(queue: str, **more: int | str) -> dict[str, int | str]:
    return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue, **more}


def chain(client: Client, *steps: int) -> None:
    """Declare queues step0, step1 …; each dead-letters after its time (ms) to the next, the last one to `end`."""
    names = [f"step{number}" for number in range(len(steps))] + ["end"]
    for name, following, ttl_ms in zip(names, names[1:], steps, strict=False):
        client.declare(name, arguments=dead_letters_to(following, **{"x-message-ttl": ttl_ms}))
    client.declare("end")


def test_one_advance_runs_a_chain_of_message_ttls(running: RunningServer, client: Client) -> None:
    chain(client, *[10 * MINUTE_MS] * 3)
    client.publish("step0", b"patient")
    client.consume("end", no_ack=True)
    running.advance(30 * MINUTE_MS - 10 * SECOND_MS)
    client.sync()
    assert client.ready_count("step2") == 1
    running.advance(10 * SECOND_MS)
    assert client.expect_delivery()[1] == b"patient"


def test_timers_due_during_an_advance_run_in_order(running: RunningServer, client: Client) -> None:
    arguments: FieldTable = {"x-delayed-type": "direct"}
    client.call(commands.Exchange.Declare(exchange="later", exchange_type="x-delayed-message", arguments=arguments))
    client.declare("waiting", arguments=dead_letters_to("end"))
    client.declare("end")
    client.call(commands.Queue.Bind(queue="end", exchange="later", routing_key="end"))
    for delay_ms in (50 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS):
        client.publish("end", b"%d" % delay_ms, exchange="later", headers={"x-delay": delay_ms})
    client.publish("waiting", b"expired", expiration=str(20 * MINUTE_MS))
    client.consume("end", no_ack=True)
    running.advance(HOUR_MS)
    bodies = [client.expect_delivery()[1] for _ in range(4)]
    assert bodies == [b"600000", b"expired", b"1800000", b"3000000"]


def test_each_timer_runs_at_its_own_time(running: RunningServer, client: Client) -> None:
    chain(client, MINUTE_MS, MINUTE_MS)
    running.ask(lambda server: server.ticking.freeze())
    started_us = running.ask(lambda server: server.clock.now_us())
    running.ask(lambda server: server.broker.event_logs.start_all())
    client.publish("step0", b"x")
    client.sync()
    running.advance(5 * MINUTE_MS)
    events = running.ask(lambda server: list(next(iter(server.broker.event_logs)).events))
    assert [(event.kind, (event.time_us - started_us) // 1000) for event in events] == [
        ("publish", 0),
        ("expire", MINUTE_MS),
        ("dead_letter", MINUTE_MS),
        ("expire", 2 * MINUTE_MS),
        ("dead_letter", 2 * MINUTE_MS),
    ]


def test_a_due_backlog_is_delivered_before_later_timers(running: RunningServer, client: Client) -> None:
    """There is more than one drain batch of messages, then another message a minute later."""
    client.declare("many", arguments=dead_letters_to("end", **{"x-message-ttl": MINUTE_MS}))
    client.declare("last", arguments=dead_letters_to("end", **{"x-message-ttl": 2 * MINUTE_MS}))
    client.declare("end")
    client.publish("last", b"last")
    for _ in range(5000):
        client.publish("many", b"many")
    client.sync()
    client.consume("end", no_ack=True)
    running.advance(HOUR_MS)
    bodies = [client.expect_delivery()[1] for _ in range(5001)]
    assert bodies == [b"many"] * 5000 + [b"last"]


def test_heartbeats_survive_an_advance(running: RunningServer) -> None:
    with Client(running.port).open(heartbeat=10) as client:
        running.advance(YEARS_MS)
        client.sync()
        assert running.ask(lambda server: len(server.broker.connections)) == 1


def test_heartbeats_continue_while_the_clock_is_frozen(running: RunningServer) -> None:
    running.ask(lambda server: server.ticking.freeze())
    with Client(running.port).open(heartbeat=1) as client:
        # Half an interval later.
        assert client.socket.recv(100)[:1] == b"\x08"


def test_a_handshake_continues_after_an_advance(running: RunningServer) -> None:
    with Client(running.port) as client:
        client.send_bytes(PROTOCOL_HEADER)
        client.expect(commands.Connection.Start, channel=0)
        running.advance(YEARS_MS)
        client.send(commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest"), channel=0)
        client.expect(commands.Connection.Tune, channel=0)
        running.advance(HOUR_MS)
        client.send(commands.Connection.TuneOk(2047, 131072, 0), channel=0)
        client.call(commands.Connection.Open("/"), channel=0)


def test_an_advance_ages_earlier_messages_only(running: RunningServer, client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": MINUTE_MS})
    client.publish("q", b"before")
    client.sync()
    running.advance(MINUTE_MS)
    client.publish("q", b"after")
    answer = client.call(commands.Basic.Get(queue="q"))
    assert (answer.name, client.expect_body()) == ("Basic.GetOk", b"after")


def test_publishing_during_advances_loses_nothing(running: RunningServer, client: Client) -> None:
    client.declare("q", arguments=dead_letters_to("end", **{"x-message-ttl": MINUTE_MS}))
    client.declare("end")
    for _ in range(50):
        client.publish("q", b"x")
        running.advance(40 * SECOND_MS)
    client.sync()
    running.advance(MINUTE_MS)
    assert client.ready_count("end") == 50


def test_an_advance_times_out_a_consumer_that_does_not_settle(running: RunningServer, client: Client) -> None:
    client.declare("q")
    client.publish("q", b"x")
    client.consume("q")
    client.expect_delivery()
    running.advance(29 * MINUTE_MS)
    client.sync()
    running.advance(2 * MINUTE_MS)
    assert client.expect(commands.Channel.Close).reply_code == 406


def test_deliveries_during_an_advance_do_not_time_out(running: RunningServer, client: Client) -> None:
    """The client had no time to settle them."""
    chain(client, MINUTE_MS)
    client.publish("step0", b"x")
    client.consume("end")
    running.advance(YEARS_MS)
    client.expect_delivery()
    client.sync()
    running.advance(32 * MINUTE_MS)
    assert client.expect(commands.Channel.Close).reply_code == 406


def test_queues_and_streams_expire(running: RunningServer, client: Client) -> None:
    client.declare("unused", arguments={"x-expires": HOUR_MS})
    stream = {"x-queue-type": "stream", "x-max-age": "1h"}
    client.declare("stream", durable=True, arguments=stream)
    for _ in range(3):
        client.publish("stream", bytes(300_000))
    client.sync()
    running.advance(HOUR_MS)
    assert running.ask(lambda server: set(server.broker.vhosts["/"].queues)) == {"stream"}
    # The newest chunk always stays.
    assert client.ready_count("stream") == 1


def test_advancing_by_0_changes_nothing(running: RunningServer, client: Client) -> None:
    running.ask(lambda server: server.ticking.freeze())
    before = running.ask(lambda server: server.clock.now())
    running.advance(0)
    assert running.ask(lambda server: server.clock.now()) == before


@pytest.mark.parametrize("duration_ms", [-1, LATEST_MS])
def test_an_invalid_advance_changes_nothing(running: RunningServer, client: Client, duration_ms: int) -> None:
    client.declare("q", arguments={"x-message-ttl": MINUTE_MS})
    client.publish("q", b"x")
    client.sync()
    with pytest.raises(ValueError, match="the clock cannot go"):
        running.advance(duration_ms)
    assert not running.ask(lambda server: server.clock.is_frozen)
    assert client.ready_count("q") == 1


def test_the_clock_runs_on_after_an_advance(running: RunningServer, client: Client) -> None:
    chain(client, 50)
    client.consume("end", no_ack=True)
    running.advance(HOUR_MS)
    client.publish("step0", b"x")
    assert client.expect_delivery()[1] == b"x"


def test_the_last_move_of_the_clock_has_its_real_time(running: RunningServer) -> None:
    assert running.ask(lambda server: server.node.clock_moved_at_ms()) is None
    running.advance(HOUR_MS)
    advanced = running.ask(lambda server: server.node.clock_moved_at_ms())
    assert advanced is not None
    running.ask(lambda server: server.node.freeze())
    frozen = running.ask(lambda server: server.node.clock_moved_at_ms())
    assert frozen is not None
    assert 0 <= frozen - advanced < HOUR_MS


def test_the_clock_runs_after_a_failed_advance(running: RunningServer) -> None:
    def fail(now: int) -> None:
        raise RuntimeError("on purpose")

    running.ask(lambda server: server.broker.timers.at(server.clock.now() + MINUTE_MS, fail))
    with pytest.raises(RuntimeError, match="on purpose"):
        running.advance(HOUR_MS)
    assert running.ask(lambda server: (server.clock.is_frozen, server.broker.advancing_to_ms)) == (False, None)


@pytest.mark.parametrize("heap", ["timers", "real_timers"])
def test_a_timer_that_fails_keeps_no_other_from_running(running: RunningServer, heap: str) -> None:
    ran = threading.Event()

    def fail(now: int) -> None:
        raise RuntimeError("on purpose")

    def arrange(server: Any) -> None:
        server.loop.set_exception_handler(lambda loop, context: None)
        timers = getattr(server.broker, heap)
        timers.at(server.broker.now, fail)
        timers.at(server.broker.now, lambda now: ran.set())
        server.flush()

    running.ask(arrange)
    # Another request would flush.
    assert ran.wait(timeout=10)


# Frozen


def test_messages_do_not_age_while_the_clock_is_frozen(running: RunningServer, client: Client) -> None:
    chain(client, 20)
    client.consume("end", no_ack=True)
    running.ask(lambda server: server.ticking.freeze())
    client.publish("step0", b"x")
    client.sync()
    time.sleep(0.06)
    assert client.ready_count("step0") == 1
    assert running.ask(lambda server: server.ticking._timer) is None
    running.ask(lambda server: server.ticking.resume())
    assert client.expect_delivery()[1] == b"x"


def test_an_advance_keeps_the_clock_frozen(running: RunningServer, client: Client) -> None:
    chain(client, MINUTE_MS)
    running.ask(lambda server: server.ticking.freeze())
    before = running.ask(lambda server: server.clock.now())
    client.publish("step0", b"x")
    client.consume("end", no_ack=True)
    running.advance(MINUTE_MS)
    assert client.expect_delivery()[1] == b"x"
    assert running.ask(lambda server: (server.clock.is_frozen, server.clock.now())) == (True, before + MINUTE_MS)


def test_resuming_does_not_skip_time(running: RunningServer, client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": MINUTE_MS})
    running.ask(lambda server: server.ticking.freeze())
    client.publish("q", b"x")
    client.sync()
    running.live_through(HOUR_MS)
    running.ask(lambda server: server.ticking.resume())
    assert client.ready_count("q") == 1


# Many timers


def test_many_timers_are_run_in_an_advance(running: RunningServer) -> None:
    """There are 20 000 timers with different deadlines."""
    ran: list[int] = []

    def set_them(server: object) -> None:
        broker = running.server.broker
        start = running.server.clock.now() + MINUTE_MS
        for number in range(20_000):
            broker.timers.at(start + number, ran.append)

    running.ask(set_them)
    running.advance(HOUR_MS)
    assert len(ran) == 20_000
    assert all(later - earlier == 1 for earlier, later in itertools.pairwise(ran))


# After a restart


def test_a_restart_uses_real_time_and_keeps_deadlines(tmp_path: Path) -> None:
    """A message that expires after the advanced time stays until the clock is advanced again."""
    settings: dict[str, Any] = {"ephemeral": False, "data_dir": str(tmp_path)}
    with RunningServer(**settings) as running, Client(running.port).open() as client:
        client.declare("q", durable=True, arguments={"x-message-ttl": MINUTE_MS})
        running.advance(HOUR_MS)
        client.call(commands.Confirm.Select())
        client.publish("q", b"x", delivery_mode=2)
        client.expect(commands.Basic.Ack)
    with RunningServer(**settings) as running, Client(running.port).open() as client:
        assert running.ask(lambda server: server.clock.now() - server.clock.real_now()) == 0
        running.advance(2 * MINUTE_MS)
        assert client.ready_count("q") == 1
        running.advance(HOUR_MS)
        assert client.ready_count("q") == 0


def test_a_timer_due_at_once_runs_before_the_next_read(running: RunningServer) -> None:
    order: list[str] = []

    def arrange(server: Any) -> None:
        server.broker.timers.at(server.broker.now, lambda now: order.append("due"))
        server.flush()
        server.loop.call_soon(order.append, "read")

    running.ask(arrange)
    running.until(lambda server: len(order) == 2)
    assert order == ["due", "read"]


def test_habits_are_timed_by_the_clock_that_is_moved(running: RunningServer, client: Client) -> None:
    def habits() -> list[str]:
        def look(server: Server) -> list[str]:
            server.broker.advice.scan_all()
            return [advice.habit.name for advice in server.broker.advice]

        return running.ask(look)

    client.call(commands.Basic.Qos(prefetch_count=1000))
    client.declare("orders", durable=True)
    client.consume("orders")
    for _ in range(2):
        with Client(running.port).open() as publisher:
            for _ in range(100):
                publisher.publish("orders", b"m")
            publisher.sync()
        running.advance(MINUTE_MS)
    assert habits() == ["growing-unacked"]


def test_connections_of_different_minutes_of_a_moved_clock_are_no_habit(running: RunningServer, client: Client) -> None:
    client.declare("orders", durable=True)
    for _ in range(30):
        with Client(running.port).open() as publisher:
            publisher.publish("orders", b"m")
            publisher.sync()
        running.advance(MINUTE_MS)
    assert running.ask(lambda server: len(server.broker.advice)) == 0
