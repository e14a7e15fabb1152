from __future__ import annotations

from pathlib import Path

from amqp_broker.control import control_folder, control_socket


def test_the_folder_is_as_given() -> None:
    assert control_folder({"AMQP_BROKER_RUNTIME_DIR": "/run/x", "XDG_RUNTIME_DIR": "/run/user/1"}) == Path("/run/x")


def test_a_users_own_folder_is_taken_else() -> None:
    assert control_folder({"XDG_RUNTIME_DIR": "/run/user/1"}) == Path("/run/user/1/amqp-broker")


def test_without_one_the_folder_is_named_after_the_user() -> None:
    assert control_folder({}).name.startswith("amqp-broker-")


def test_a_socket_is_named_after_the_port() -> None:
    assert control_socket(Path("/run/x"), 5672) == Path("/run/x/5672.sock")
