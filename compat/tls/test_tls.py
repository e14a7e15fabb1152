"""amqp-broker's events about TLS clients equal RabbitMQ's for the same clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.brokers import AmqpBroker
from compat.certificates import Issuer
from compat.oracle.records import is_among, load
from compat.tls.story import LOGINS_FROM
from compat.tls.suite import TLS, own_story


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("login_from", LOGINS_FROM)
def test_the_events_of_tls_clients_equal_rabbitmqs(tmp_path: Path, issuer: Issuer, login_from: str) -> None:
    told = own_story(AmqpBroker(tmp_path), issuer, login_from)
    # As read from a file.
    assert is_among(json.loads(json.dumps(told)), load(TLS)[login_from])
    success = "user.authentication.success" if login_from != "distinguished_name" else "user.authentication.failure"
    assert [key for key, facts in told if facts["auth_mechanism"] == "EXTERNAL"].count(success) >= 1


def test_every_record_is_still_asked() -> None:
    assert load(TLS).keys() == set(LOGINS_FROM)
