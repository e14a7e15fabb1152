"""The configuration and commands of an oracle's process: compat/oracles/rabbitmq.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compat.oracles.oracle import ORACLES, SYSTEM
from compat.oracles.rabbitmq import RabbitMQ


def rabbitmq(folder: Path, name: str = "3.10", root: Path = SYSTEM, plugins: tuple[str, ...] = ()) -> RabbitMQ:
    broker = RabbitMQ(folder, plugins=plugins, settings=("heartbeat = 7",), oracle=ORACLES[name])
    broker.root = root
    return broker


def test_the_configuration_has_the_ports_of_the_plugins_and_all_settings(tmp_path: Path) -> None:
    broker = rabbitmq(tmp_path, plugins=("rabbitmq_management", "rabbitmq_prometheus", "rabbitmq_stream"))
    assert broker.configuration() == [
        f"listeners.tcp.default = 127.0.0.1:{broker.port}",
        "log.console = true",
        "log.file = false",
        f"management.tcp.port = {broker.management_port}",
        "management.tcp.ip = 127.0.0.1",
        "management.db_cache_multiplier = 0",
        f"prometheus.tcp.port = {broker.prometheus_port}",
        "prometheus.tcp.ip = 127.0.0.1",
        f"stream.listeners.tcp.default = 127.0.0.1:{broker.stream_port}",
        "heartbeat = 7",
    ]


def test_a_plugin_that_is_not_enabled_has_no_port(tmp_path: Path) -> None:
    assert [line.partition(" ")[0] for line in rabbitmq(tmp_path).configuration()] == [
        *("listeners.tcp.default", "log.console", "log.file", "heartbeat"),
    ]


@pytest.mark.parametrize(("name", "is_undone"), [("3.10", False), ("4.0", False), ("4.3", True)])
def test_debians_change_of_transient_queues_is_undone(tmp_path: Path, name: str, is_undone: bool) -> None:
    line = "deprecated_features.permit.transient_nonexcl_queues = false"
    assert (line in rabbitmq(tmp_path, name).configuration()) == is_undone


def test_two_at_once_share_nothing(tmp_path: Path) -> None:
    brokers = [rabbitmq(tmp_path / name) for name in "ab"]
    ports = [
        port
        for broker in brokers
        for port in (broker.port, broker.management_port, broker.stream_port, broker.dist_port, broker.epmd_port)
    ]
    assert len(set(ports)) == len(ports)
    one, other = (broker.environment() for broker in brokers)
    # HOME has the Erlang cookie.
    for name in ("HOME", "RABBITMQ_NODENAME", "RABBITMQ_MNESIA_BASE", "RABBITMQ_LOG_BASE", "ERL_EPMD_PORT"):
        assert one[name] != other[name]


def test_variables_for_another_rabbitmq_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RABBITMQ_ADVANCED_CONFIG_FILE", "/etc/rabbitmq/advanced.config")
    assert "RABBITMQ_ADVANCED_CONFIG_FILE" not in rabbitmq(tmp_path).environment()
    assert os.environ["RABBITMQ_ADVANCED_CONFIG_FILE"]


def test_the_package_of_the_system_runs_as_it_is(tmp_path: Path) -> None:
    assert rabbitmq(tmp_path).entered("rabbitmqctl", "status") == ["/usr/lib/rabbitmq/bin/rabbitmqctl", "status"]


def test_another_release_runs_in_its_root_and_ends_with_this_process(tmp_path: Path) -> None:
    broker = rabbitmq(tmp_path, "4.3", Path("/cache/sid"))
    assert broker.entered("/usr/bin/erl", "-version") == [
        *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"),
        *("sh", "-e", str(Path("compat/oracles/enter_root.sh").resolve()), "/cache/sid", str(tmp_path)),
        *("/usr/bin/erl", "-version"),
    ]
