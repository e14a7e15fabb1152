from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pamqp import commands

from amqp_broker.broker.scheduling.timers import LATEST_MS
from amqp_broker.cli.own.clock import duration_of, moment
from tests.cli.program import Serving, run, serving


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("broker"), "--management-port", "0") as broker:
        yield broker


def clock(broker: Serving, *words: str) -> tuple[int, str, str]:
    done = run("clock", *words, "--node", str(broker.port))
    return done.returncode, done.stdout, done.stderr


def test_time_is_shown_advanced_frozen_and_resumed(broker: Serving) -> None:
    with broker.client() as client:
        client.open()
        client.declare("q", arguments={"x-message-ttl": 1_800_000})
        client.publish("q", b"x")
        client.sync()
        assert "offset:  +0s\n" in clock(broker, "show")[1]
        code, told, _ = clock(broker, "freeze")
        assert (code, "(frozen)" in told) == (0, True)
        code, told, _ = clock(broker, "advance", "30m")
        assert (code, client.ready_count("q")) == (0, 0)
        assert "offset:  +29m5" in told
        code, told, _ = clock(broker, "resume")
        assert (code, "(frozen)" in told) == (0, False)


def test_events_that_the_time_brings_are_shown_with_the_time_until_then(broker: Serving) -> None:
    with broker.client() as client:
        client.open()
        client.declare("late", arguments={"x-expires": 3_600_000})
        code, shown, _ = clock(broker, "due", "--limit", "1")
        assert code == 0
        assert re.fullmatch(
            r"2\d{3}-.* in (59m5\d\.?\d*s|1h) +The unused queue 'late' in vhost '/' is deleted, with 0 messages\.\n",
            shown,
        )
        client.send(commands.Queue.Delete(queue="late"))
        client.expect(commands.Queue.DeleteOk)
    assert clock(broker, "due") == (0, "Nothing waits for its time.\n", "")


def test_events_are_shown_up_to_a_number_and_within_a_duration(broker: Serving) -> None:
    with broker.client() as client:
        client.open()
        for minutes in (10, 20, 90):
            client.declare(f"expires{minutes}", arguments={"x-expires": minutes * 60_000})
        code, shown, _ = clock(broker, "due", "--limit", "1", "--within", "1h")
        assert code == 0
        assert re.fullmatch(r".*'expires10' in vhost '/' is deleted.*\n… and 1 more\.\n", shown)
        code, shown, problem = clock(broker, "due", "--within", "soon")
        assert (code, shown) == (65, "")
        assert "'soon' is not a duration" in problem
        for minutes in (10, 20, 90):
            client.send(commands.Queue.Delete(queue=f"expires{minutes}"))
            client.expect(commands.Queue.DeleteOk)


def test_an_invalid_duration_is_refused_with_a_reason(broker: Serving) -> None:
    code, told, problem = clock(broker, "advance", "soon")
    assert (code, told) == (65, "")
    assert problem == "amqp-broker: 'soon' is not a duration like 500ms, 30s, 30m, 1h30m or 2d.\n"


def test_a_broker_can_be_reached_over_http(broker: Serving) -> None:
    done = run("clock", "show", "--url", f"http://guest:guest@127.0.0.1:{broker.ports['management']}")
    assert (done.returncode, done.stdout.startswith("now:")) == (0, True)
    done = run("clock", "freeze", "--url", f"http://guest:wrong@127.0.0.1:{broker.ports['management']}")
    assert (done.returncode, "Login failed" in done.stderr or "Not_Authorized" in done.stderr) == (77, True), (
        done.stderr
    )


def test_without_a_broker_the_clock_is_an_error(tmp_path: Path) -> None:
    done = run(
        "clock", "show", XDG_RUNTIME_DIR=str(tmp_path), AMQP_BROKER_CONTROL_DIR=str(tmp_path), TMPDIR=str(tmp_path)
    )
    assert (done.returncode, done.stdout) == (69, "")
    assert "runs here" in done.stderr
    done = run("clock", "show", "--url", "localhost")
    assert (done.returncode, "is not the address of an HTTP API" in done.stderr) == (69, True)


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [(0, "0s"), (1, "0.001s"), (90_000, "1m30s"), (3_600_000, "1h"), (90_061_500, "1d1h1m1.5s")],
)
def test_a_duration_is_shown_in_units(duration_ms: int, text: str) -> None:
    assert duration_of(duration_ms) == text


def test_a_clock_that_has_passed_the_last_date_is_shown() -> None:
    assert moment(LATEST_MS) == "9999-12-31 23:59:59.999+00:00"
    assert moment(LATEST_MS + 1) == "after the year 9999"
