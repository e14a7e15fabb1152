"""Each oracle runs, beside others, and leaves nothing on the machine, however its user ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pika
import pytest

from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES, SYSTEM, Oracle
from compat.oracles.rabbitmq import RabbitMQ
from compat.waiting import wait_until

pytestmark = [pytest.mark.verify, pytest.mark.timeout(900)]

# Starts an oracle and waits for a signal. As programs do, it turns SIGTERM into an exit.
USER = """
import signal, sys, time
from pathlib import Path
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
broker = RabbitMQ(Path(sys.argv[2]), oracle=ORACLES[sys.argv[1]])
try:
    broker.start()
    print("started", flush=True)
    # signal.pause() waits for ever if the signal arrives just before it.
    while True:
        time.sleep(0.1)
finally:
    broker.kill()
"""


@pytest.fixture(params=ORACLES)
def oracle(request: pytest.FixtureRequest) -> Oracle:
    oracle = ORACLES[request.param]
    try:
        oracle.have()
    except Unavailable as reason:
        pytest.skip(str(reason))
    return oracle


def leftovers(folder: Path) -> list[str]:
    """Return the mounts and the processes that name a folder."""
    mounts = [line for line in Path("/proc/mounts").read_text("utf-8").splitlines() if str(folder) in line]
    found = subprocess.run(
        ["pgrep", "--full", "--list-full", str(folder)], capture_output=True, encoding="utf-8", check=False
    )
    return mounts + found.stdout.splitlines()


def test_an_oracle_serves_clients_with_its_plugins_and_tools(oracle: Oracle, tmp_path: Path) -> None:
    plugins = ("rabbitmq_management", "rabbitmq_prometheus", "rabbitmq_shovel", "rabbitmq_stream", "rabbitmq_tracing")
    one, other = (RabbitMQ(tmp_path / name, plugins=plugins, oracle=oracle) for name in ("one", "other"))
    for broker in (one, other):
        broker.start()
    try:
        for broker in (one, other):
            with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
                connection.channel().queue_declare(broker.folder.name, durable=True)
            listed = broker.run("rabbitmqctl", "-q", "list_queues", "--no-table-headers", "name")
            assert listed.stdout == f"{broker.folder.name}\n"
            version = broker.run("rabbitmqctl", "version").stdout.strip()
            assert version == oracle.version
            assert version.startswith(f"{oracle.name}.")
    finally:
        one.kill()
        other.kill()
    assert leftovers(tmp_path) == []


def test_a_killed_oracle_keeps_its_data(oracle: Oracle, tmp_path: Path) -> None:
    broker = RabbitMQ(tmp_path / "rabbitmq", oracle=oracle)
    broker.start()
    try:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            connection.channel().queue_declare("kept", durable=True)
        # Mnesia, which older versions have, writes its log to the file a moment later.
        broker.run("rabbitmqctl", "eval", "mnesia:sync_log().")
        broker.restart()
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            connection.channel().queue_declare("kept", passive=True)
    finally:
        broker.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_oracle_ends_with_the_process_that_started_it(
    oracle: Oracle, number: signal.Signals, tmp_path: Path
) -> None:
    check_that_it_ends(oracle, number, tmp_path)


def test_an_oracle_in_another_root_ends_even_with_a_process_that_is_killed(oracle: Oracle, tmp_path: Path) -> None:
    if oracle.have() != SYSTEM:
        check_that_it_ends(oracle, signal.SIGKILL, tmp_path)


def check_that_it_ends(oracle: Oracle, number: signal.Signals, folder: Path) -> None:
    command = [sys.executable, "-c", USER, oracle.name, str(folder / "rabbitmq")]
    user = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert user.stdout is not None
    assert user.stdout.readline() == b"started\n"
    assert leftovers(folder / "rabbitmq") != []
    user.send_signal(number)
    user.wait()
    user.stdout.close()
    wait_until(lambda: leftovers(folder / "rabbitmq") == [])


def test_an_interrupted_build_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "compat.oracles.debian_root", "sid", str(tmp_path / "sid"), "rabbitmq-server"]
    builder = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    # Packages are being installed.
    wait_until(lambda: (tmp_path / "sid.new" / "var" / "lib").exists() or builder.poll(), 120)
    if builder.poll():
        pytest.skip("no other release of Debian can be had")
    builder.send_signal(signal.SIGINT)
    builder.wait()
    wait_until(lambda: leftovers(tmp_path) == [])
    assert [path.name for path in tmp_path.iterdir()] == ["sid.lock"]
