"""`prometheus.path` of rabbitmq.conf moves the metrics, here and in RabbitMQ."""

from __future__ import annotations

from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from compat.brokers import AmqpBroker
from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import RabbitMQ

PATHS = ("/", "/per-object", "/metrics", "/m", "/m/x", "/m/x/", "/m/x/detailed", "/m/x/per-object", "/m/x/none")


def statuses(port: int) -> dict[str, int]:
    return {path: status(f"http://127.0.0.1:{port}{path}") for path in PATHS}


def status(url: str) -> int:
    try:
        with urlopen(url) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


@pytest.mark.verify
@pytest.mark.parametrize("path", ["/m/x/", "/"])
@pytest.mark.parametrize("minor", ORACLES)
def test_the_metrics_are_where_rabbitmq_has_them(minor: str, path: str, tmp_path: Path) -> None:
    setting = f"prometheus.path = {path}"
    try:
        ORACLES[minor].have()
    except Unavailable as reason:
        pytest.skip(str(reason))
    there = RabbitMQ(tmp_path / "rabbitmq", 0, ("rabbitmq_prometheus",), (setting,), ORACLES[minor])
    (tmp_path / "rabbitmq.conf").write_text(f"{setting}\n", "utf-8")
    here = AmqpBroker(tmp_path / "amqp-broker", options=("--config", str(tmp_path / "rabbitmq.conf")))
    with there.running(), here.running():
        assert statuses(here.prometheus_port) == statuses(there.prometheus_port)
