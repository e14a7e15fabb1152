from __future__ import annotations

import logging

import pytest

from amqp_broker.server import advice_log
from tests.client import Client
from tests.peer import Lab
from tests.running import RunningServer


def test_advice_is_logged_once_as_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    lab = Lab()
    lab.broker.advice.listeners = (advice_log.log,)
    for _ in range(3):
        lab.connect().publish("nowhere", b"m")
    lab.broker.advice.scan()
    lab.broker.advice.scan()
    [record] = [record for record in caplog.records if record.name == "amqp_broker.advice"]
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("unroutable: ")
    assert "exchange '(default)'" in record.getMessage()


def test_a_server_looks_for_advice_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    with RunningServer() as running, Client(running.port) as client:
        client.open()
        client.publish("nowhere", b"m")
        client.sync()
        running.until(lambda server: any(record.name == "amqp_broker.advice" for record in caplog.records))
