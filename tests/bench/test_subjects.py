"""The brokers that are measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import subjects
from bench.generator import Load, LoadError, MissingToolError, build_generator, run_load
from bench.subjects import Running, amqp_broker, compiled, running
from compat.brokers import AmqpBroker


def test_a_broker_that_runs_already_has_an_address_and_a_login() -> None:
    subject = running("LavinMQ=amqp://ann:p%40ss@127.0.0.2:5673/,4711")
    broker = subject.make(Path())
    assert isinstance(broker, Running)
    assert (subject.name, broker.host, broker.port, broker.pid) == ("LavinMQ", "127.0.0.2", 5673, 4711)
    assert (broker.user, broker.password) == ("ann", "p@ss")
    assert subject.make_managed is None


def test_a_url_without_port_and_login_has_the_usual_ones() -> None:
    broker = running("x=amqp://localhost,1").make(Path())
    assert isinstance(broker, Running)
    assert (broker.host, broker.port, broker.user, broker.password) == ("localhost", 5672, "guest", "guest")


@pytest.mark.parametrize(
    "text", ["LavinMQ", "=amqp://localhost,1", "x=amqp://localhost", "x=http://localhost,1", "x=amqp://h,p"]
)
def test_an_incomplete_broker_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not NAME=URL,PID"):
        running(text)


def test_options_of_serve_are_passed_on(tmp_path: Path) -> None:
    broker = amqp_broker("lazy", ("--store-sync", "os")).make(tmp_path)
    assert isinstance(broker, AmqpBroker)
    assert broker.command()[-2:] == ["--store-sync", "os"]


def test_the_compiled_build_is_found_before_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "COMPILED", tmp_path)
    broker = compiled().make(tmp_path)
    assert isinstance(broker, AmqpBroker)
    found = broker.environment()
    assert (found["PYTHONPATH"], found["PYTHONSAFEPATH"]) == (str(tmp_path), "1")


def test_without_a_compiled_build_the_command_that_makes_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects, "COMPILED", tmp_path / "compiled")
    with pytest.raises(MissingToolError, match="make compiled"):
        compiled()


@pytest.mark.verify
def test_a_wrong_password_is_a_failed_load(tmp_path: Path) -> None:
    build_generator()
    broker = AmqpBroker(tmp_path)
    with broker.running():
        stranger = running(f"x=amqp://guest:wrong@127.0.0.1:{broker.port}/,{broker.pid}").make(tmp_path)
        with pytest.raises(LoadError, match="closed a connection"):
            run_load(Load(), stranger, stranger.pid)
