"""The decorator `with_vhost`."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from typing import Any

import pika
import pytest

from amqp_broker.settings.settings import SettingsError
from amqp_broker.testing import LeakWarning, with_vhost
from amqp_broker.testing.embedded_vhost import EmbeddedVHost


def test_a_test_has_a_new_vhost_that_is_deleted_afterwards() -> None:
    @with_vhost
    def of_one(vhost: EmbeddedVHost) -> EmbeddedVHost:
        assert vhost.name in vhost.broker.ask(lambda server: list(server.broker.vhosts))
        assert vhost.queues() == {}
        return vhost

    first, second = of_one(), of_one()
    assert first.name != second.name
    assert first.broker is second.broker
    assert first.name not in first.broker.ask(lambda server: list(server.broker.vhosts))


def test_tests_with_other_settings_have_another_broker() -> None:
    @with_vhost(compat="4.3")
    def of_another(vhost: EmbeddedVHost) -> tuple[object, str]:
        return vhost.broker, vhost.broker.ask(lambda server: server.broker.profile.version)

    @with_vhost()
    def of_the_default(vhost: EmbeddedVHost) -> object:
        return vhost.broker

    broker, version = of_another()
    assert version.startswith("4.3")
    assert broker is of_another()[0]
    assert broker is not of_the_default()


def test_a_method_and_a_coroutine_function_get_their_own_arguments_too() -> None:
    class Case:
        @with_vhost
        async def tested(self, number: int, *, vhost: EmbeddedVHost, text: str = "") -> tuple[object, ...]:
            await asyncio.sleep(0)
            return self, number, text, vhost.queues()

    case = Case()
    assert inspect.iscoroutinefunction(Case.tested)
    assert asyncio.run(case.tested(1, text="a")) == (case, 1, "a", {})


def test_a_test_runner_does_not_see_the_argument() -> None:
    @with_vhost
    def documented(number: int, vhost: EmbeddedVHost) -> None:
        """Test a number."""

    assert list(inspect.signature(documented).parameters) == ["number"]
    assert documented.__doc__ == "Test a number."


def test_an_error_has_the_events_of_the_vhost_as_a_note() -> None:
    @with_vhost
    def failing(vhost: EmbeddedVHost) -> None:
        with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
            connection.channel().basic_publish("", "order", b"1")
        raise AssertionError(vhost.name)

    with pytest.raises(AssertionError) as caught:
        failing()
    (note,) = caught.value.__notes__
    assert note.splitlines() == [
        f"{caught.value}:",
        "   #1 publish     exchange '', routing key 'order' -> no queue: b'1'",
    ]


def test_an_error_without_events_has_no_note() -> None:
    @with_vhost
    def failing(vhost: EmbeddedVHost) -> None:
        raise AssertionError

    with pytest.raises(AssertionError) as caught:
        failing()
    assert not hasattr(caught.value, "__notes__")


def test_an_open_connection_is_warned_of_and_does_not_stay_open() -> None:
    opened: list[Any] = []

    @with_vhost
    def leaking(vhost: EmbeddedVHost) -> None:
        opened.append(pika.BlockingConnection(pika.URLParameters(vhost.url)))

    with pytest.warns(LeakWarning, match="is open"):
        leaking()
    with pytest.raises(pika.exceptions.AMQPError):
        opened[0].process_data_events(1)


def test_a_broker_that_a_test_has_stopped_is_replaced() -> None:
    @with_vhost(heartbeat_s=7)
    def stopping(vhost: EmbeddedVHost) -> object:
        vhost.broker.stop()
        return vhost.broker

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stopping() is not stopping()


def test_a_setting_that_does_not_exist_is_named_when_the_test_is_called() -> None:
    @with_vhost(heart_beat=7)
    def never_called(vhost: EmbeddedVHost) -> None:
        raise AssertionError

    with pytest.raises(SettingsError, match="heart_beat"):
        never_called()
