from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
import threading
import unittest
import urllib.request
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aio_pika
import pika
import pytest
import uvloop

from amqp_broker.amqp.errors import NotFound
from amqp_broker.management.documents.snapshots import SnapshotError
from amqp_broker.server.listening import CannotListen
from amqp_broker.settings.settings import SettingsError
from amqp_broker.testing import EmbeddedBroker


def connect(url: str) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(url))


def publish(url: str, queue: str, *bodies: bytes, durable: bool = False) -> None:
    """Each is confirmed when this returns."""
    with connect(url) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(queue, durable=durable)
        for body in bodies:
            channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2 if durable else 1))


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_queues_and_messages_are_current(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with EmbeddedBroker(new_loop=new_loop) as broker:
        publish(broker.url, "q", b"a", b"b")
        assert broker.depth("q") == 2
        [first, _] = broker.messages("q")
        assert (first.body, first.routing_key, first.properties, first.redelivered) == (
            b"a",
            "q",
            {"delivery_mode": 1},
            False,
        )
        state = broker.queues()["q"]
        assert (state.type, state.ready, state.unacked, state.consumers) == ("classic", 2, 0, 0)


def test_messages_of_an_exclusive_queue_are_returned() -> None:
    with EmbeddedBroker() as broker, connect(broker.url) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        name = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", name, b"m")
        assert broker.depth(name) == 1


def test_missing_vhosts_and_queues_are_not_found() -> None:
    with EmbeddedBroker() as broker, pytest.raises(NotFound, match="no queue 'q' in vhost '/'"):
        broker.depth("q")


def test_several_brokers_run_in_one_process() -> None:
    with EmbeddedBroker() as one, EmbeddedBroker() as other:
        assert one.port != other.port
        publish(one.url, "q", b"m")
        assert (list(one.queues()), list(other.queues())) == (["q"], [])


async def test_an_asyncio_test_uses_the_broker() -> None:
    with EmbeddedBroker() as broker:
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("q")
            await channel.default_exchange.publish(aio_pika.Message(b"m"), "q")
            assert broker.depth("q") == 1
            assert (await queue.get(no_ack=True)).body == b"m"


async def test_the_broker_runs_in_the_loop_of_the_caller() -> None:
    threads = set(threading.enumerate())
    async with EmbeddedBroker().run_in_loop() as broker:
        assert not [thread for thread in threading.enumerate() if thread not in threads]
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            await channel.declare_queue("q")
            await channel.default_exchange.publish(aio_pika.Message(b"m"), "q")
            assert [message.body for message in broker.messages("q")] == [b"m"]
    assert not broker.is_running


def test_the_http_api_is_served_on_first_use() -> None:
    with EmbeddedBroker() as broker:
        assert "management" not in broker.server.ports
        url = broker.management_url
        assert broker.management_url == url
        passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        address = f"http://127.0.0.1:{broker.server.ports['management']}/"
        passwords.add_password(None, address, "guest", "guest")
        opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(passwords))
        assert url == address.replace("//", "//guest:guest@").rstrip("/")
        assert json.load(opener.open(f"{address}api/whoami"))["name"] == "guest"
        broker.restart()
        assert broker.management_url == url


def test_the_http_api_is_not_served_if_it_is_switched_off() -> None:
    with EmbeddedBroker(management=False) as broker, pytest.raises(RuntimeError, match="management"):
        assert broker.management_url


@pytest.mark.parametrize("kill", [False, True], ids=["gracefully", "killed"])
def test_durable_messages_survive_a_restart_on_the_same_port(tmp_path: Path, kill: bool) -> None:
    with EmbeddedBroker(data_dir=str(tmp_path)) as broker:
        publish(broker.url, "kept", b"m", durable=True)
        publish(broker.url, "lost", b"m")
        connection, port = connect(broker.url), broker.port
        broker.restart(kill)
        assert broker.port == port
        assert [message.body for message in broker.messages("kept")] == [b"m"]
        assert list(broker.queues()) == ["kept"]
        expected = pika.exceptions.StreamLostError if kill else pika.exceptions.ConnectionClosedByBroker
        with pytest.raises(expected):
            connection.process_data_events(5)


def test_vhosts_of_tests_exist_after_a_restart_in_memory() -> None:
    with EmbeddedBroker() as broker, broker.vhost() as vhost:
        publish(vhost.url, "q", b"m")
        broker.restart()
        assert vhost.queues() == {}
        publish(vhost.url, "q", b"m")
        assert "publish" in vhost.failure_report()


def test_a_reset_keeps_only_the_vhosts_of_tests() -> None:
    with EmbeddedBroker() as broker, broker.vhost() as vhost:
        publish(vhost.url, "q", b"m")
        publish(broker.url, "q", b"m")
        vhost.reset()
        assert (list(vhost.queues()), list(broker.queues())) == ([], ["q"])
        broker.reset()
        assert list(broker.queues()) == []
        publish(vhost.url, "q", b"m")


def test_a_snapshot_is_restored_repeatedly(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=str(tmp_path)) as broker:
        publish(broker.url, "q", *[b"%d" % number for number in range(100)], durable=True)
        snapshot = json.loads(json.dumps(broker.snapshot()))
        with pytest.raises(SnapshotError):
            broker.restore(snapshot)
        publish(broker.url, "q", b"more", durable=True)
        broker.restore(snapshot, clear=True)
        broker.restore(snapshot, "copy")
        publish(broker.amqp_url("copy"), "safe", b"when this is confirmed, all is on disk", durable=True)
        broker.restart(kill=True)
        for vhost in ("/", "copy"):
            assert [message.body for message in broker.messages("q", vhost)] == [b"%d" % n for n in range(100)]


def test_ask_works_in_the_thread_of_the_broker() -> None:
    with EmbeddedBroker() as broker:
        assert broker.ask(lambda server: broker.ask(lambda same: same is server))


def test_ask_raises_the_error_of_the_question() -> None:
    with EmbeddedBroker() as broker, pytest.raises(ZeroDivisionError):
        broker.ask(lambda server: 1 // 0)


def test_a_running_broker_is_not_started_again() -> None:
    with EmbeddedBroker() as broker:
        port = broker.port
        with broker.start() as same:
            assert (same.port, same.is_running) == (port, True)
        assert not broker.is_running


def test_a_broker_has_no_address_before_its_start() -> None:
    with pytest.raises(RuntimeError, match="the broker is not running"):
        assert EmbeddedBroker().url


async def test_a_broker_in_the_loop_of_the_caller_is_not_restarted() -> None:
    async with EmbeddedBroker().run_in_loop() as broker:
        with pytest.raises(RuntimeError, match="cannot be restarted"):
            broker.restart()


def test_a_stopped_broker_answers_no_questions() -> None:
    broker = EmbeddedBroker().start()
    broker.stop()
    broker.stop()
    with pytest.raises(RuntimeError, match="not running"):
        broker.queues()


def test_a_deleted_broker_stops() -> None:
    broker = EmbeddedBroker().start()
    thread, gone = broker._host._thread, weakref.ref(broker)
    assert thread is not None
    del broker
    gc.collect()
    assert gone() is None
    assert not thread.is_alive()


def test_a_program_exits_silently_without_stopping_the_broker(tmp_path: Path) -> None:
    program = f"""
from amqp_broker.testing import EmbeddedBroker
import socket
broker = EmbeddedBroker(data_dir={str(tmp_path)!r}).start()
with socket.create_connection(("127.0.0.1", broker.port)) as client:
    client.sendall(b"no AMQP!")
    client.recv(100)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_program_decides_about_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "amqp_broker"), EmbeddedBroker() as broker:
        connect(broker.url).close()
    assert any(record.message.startswith("accepting AMQP connection") for record in caplog.records)


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(SettingsError, match="compat"):
        EmbeddedBroker(compat="1.0")
    with pytest.raises(SettingsError, match="there is no setting 'colour'"):
        EmbeddedBroker(colour="red")
    with pytest.raises(SettingsError, match=r"loopback_users is \['anna'\], which is not a text"):
        EmbeddedBroker(loopback_users=["anna"])


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("ssl_cert_login_from", "tls_login_from"),
        ("ssl_options_cacertfile", "tls_ca_file"),
        ("ssl_options_versions", "tls_versions"),
        ("prot", "port"),
    ],
)
def test_a_key_of_rabbitmq_conf_leads_to_its_setting(name: str, setting: str) -> None:
    given: dict[str, Any] = {name: "x"}
    with pytest.raises(SettingsError, match=rf"there is no setting '{name}'; did you mean '{setting}'\?"):
        EmbeddedBroker(**given)


def test_settings_are_read_from_texts_and_paths(tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text('{"users": [{"name": "anna", "tags": ""}], "vhosts": [{"name": "v"}]}', "utf-8")
    with EmbeddedBroker(definitions=file, port="0", heartbeat_s="30", event_log="no", compat=4.3) as broker:
        assert broker.ask(lambda server: list(server.broker.users)) == ["anna"]
        settings = broker.settings
    assert (settings.heartbeat_s, settings.event_log, broker.version[:4]) == (30, False, "4.3.")


def test_a_used_port_is_refused_at_once() -> None:
    with EmbeddedBroker() as broker, pytest.raises(CannotListen):
        EmbeddedBroker(port=broker.port).start()


def test_the_version_of_rabbitmq_is_a_setting() -> None:
    with EmbeddedBroker(compat="4.3") as broker, connect(broker.url) as connection:
        assert broker.version.startswith("4.3.")
        assert connection._impl.server_properties["version"] == broker.version


class WithUnittest(unittest.TestCase):
    """As users without pytest write it."""

    broker: EmbeddedBroker

    @classmethod
    def setUpClass(cls) -> None:
        cls.broker = cls.enterClassContext(EmbeddedBroker())

    def setUp(self) -> None:
        self.vhost = self.enterContext(self.broker.vhost())

    def test_a_message_arrives(self) -> None:
        publish(self.vhost.url, "q", b"m")
        assert self.vhost.depth("q") == 1


def test_unittest_uses_the_broker() -> None:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(WithUnittest).run(result)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])
