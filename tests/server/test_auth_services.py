"""The chain of logins that the settings name."""

from __future__ import annotations

import pika
import pytest

from amqp_broker.server.auth_services import AuthServices
from amqp_broker.settings.settings import SettingsError
from tests.auth_service import AuthService
from tests.broker_parts import new_broker
from tests.running import RunningServer


def chain(backends: str, cached: str = "") -> list[str]:
    broker = new_broker(auth_backends=backends, auth_cache_backend=cached)
    AuthServices(broker, lambda: None)
    shown = []
    for link in broker.logins.chain:
        authn, *authz = [
            "internal" if one is None else one.name.rpartition("_")[2] for one in (link.authn, *link.authz)
        ]
        shown.append(f"{authn}|{'+'.join(authz)}")
    return shown


def test_the_settings_name_the_chain() -> None:
    assert chain("") == chain("internal") == []
    assert chain("internal http") == ["internal|internal", "http|http"]
    assert chain("internal|http+internal") == ["internal|http+internal"]


def test_a_cache_stands_before_its_backend() -> None:
    assert chain("cache internal", "http") == ["cache|cache", "internal|internal"]
    assert chain("cache", "http|internal") == ["cache|internal"]
    assert chain("internal|cache", "http") == ["internal|cache"]


@pytest.mark.parametrize("cached", ["", "cache"])
def test_a_cache_needs_a_backend(cached: str) -> None:
    with pytest.raises(SettingsError, match=r"auth_cache\.cached_backend must name http"):
        chain("cache", cached)


def test_the_cache_spares_the_service_questions_of_other_connections() -> None:
    with AuthService() as service, RunningServer(**service.settings("cache", auth_cache_backend="http")) as running:
        for _ in range(3):
            credentials = pika.PlainCredentials("anna", "secret")
            parameters = pika.ConnectionParameters("127.0.0.1", running.port, "/", credentials)
            with pika.BlockingConnection(parameters) as connection:
                connection.channel().queue_declare("one")
        assert service.kinds() == ["user", "vhost", "resource"]
