"""Selection of the broker; test_clock.py and test_messages.py test commands that use it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from amqp_broker.cli.own.broker_client import address_of, ask, lines
from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.shared.http_api import Place, without_password
from tests.running import RunningServer


def test_an_address_has_guest_and_the_default_ports() -> None:
    address = address_of("http://localhost")
    assert address.place == Place(host="localhost", port=15672, authorization="Basic Z3Vlc3Q6Z3Vlc3Q=")
    assert (address.name, address.user, address.prefix) == ("localhost:15672", "guest", "")
    address = address_of("https://u:p%40@there:1/prefix/")
    assert (address.place.port, address.place.authorization) == (1, "Basic dTpwQA==")
    assert (address.place.tls is not None, address.user, address.prefix) == (True, "u", "/prefix")
    assert address_of("https://there").place.port == 15671


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "http://", "http://[::1", "http://localhost:abc", "http://x:0"])
def test_an_invalid_address_is_an_error(url: str) -> None:
    with pytest.raises(CommandError, match="is not the address of an HTTP API"):
        address_of(url)


def test_an_error_shows_no_password() -> None:
    with pytest.raises(CommandError, match=r"'ftp://u:\*\*\*@x' is not the address"):
        address_of("ftp://u:secret@x")
    assert without_password("http://u@x:1/y") == "http://u@x:1/y"
    assert without_password("http://x:1/y") == "http://x:1/y"


def test_an_address_without_a_broker_is_reported() -> None:
    with pytest.raises(CommandError, match=r"no HTTP API answers at 127\.0\.0\.1:1: "):
        ask("", "http://127.0.0.1:1", "GET", "/_broker/clock")
    with pytest.raises(CommandError, match=r"no HTTP API answers at 127\.0\.0\.1:1: "):
        list(lines("", "http://127.0.0.1:1", "/_broker/capture/%2F", {}))


def test_one_of_several_brokers_must_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMQP_BROKER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["amqp-broker", "clock"])
    with RunningServer(control=True, node_name="one@here"), RunningServer(control=True, node_name="two@here"):
        with pytest.raises(CommandError) as caught:
            ask("", "", "GET", "/_broker/clock")
        first, *commands = str(caught.value).splitlines()
        assert first == "several brokers run here; choose one:"
        assert sorted(commands) == ["  amqp-broker clock --node one@here", "  amqp-broker clock --node two@here"]
        assert caught.value.exit_code == 64
        with pytest.raises(CommandError, match=r"no broker 1 runs here; for one that does:\n  amqp-broker clock "):
            ask("1", "", "GET", "/_broker/clock")
