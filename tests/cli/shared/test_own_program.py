from __future__ import annotations

import sys

import pytest

from amqp_broker.cli.shared import own_program


def test_python_runs_the_package() -> None:
    assert own_program.own_program("serve", "--host", "::1") == [
        *(sys.executable, "-m", "amqp_broker"),
        *("serve", "--host", "::1"),
    ]


def test_the_single_executable_runs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_program, "IS_FROZEN", True)
    assert own_program.own_program("serve") == [sys.executable, "serve"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["serve"], ["serve", "--port", "2"]),
        (["serve", "--port", "1", "--ephemeral"], ["serve", "--ephemeral", "--port", "2"]),
        (["serve", "--port=1", "--tls", "auto"], ["serve", "--tls", "auto", "--port", "2"]),
        (["serve", "--host", "--port"], ["serve", "--host", "--port", "--port", "2"]),
    ],
)
def test_an_option_of_the_command_is_replaced(words: list[str], expected: list[str]) -> None:
    assert own_program._with(words, {"--port": "2"}) == expected


@pytest.mark.parametrize(
    "words", ["ctl -n rabbit@x list_queues", "ctl list_queues --node=x", "ctl --node x list_queues"]
)
def test_the_commands_for_brokers_can_be_pasted_into_a_shell(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/amqp-broker", *words.split()])
    assert own_program.commands_for(["5673", "a b@c"]) == (
        "\n  amqp-broker ctl list_queues --node 5673\n  amqp-broker ctl list_queues --node 'a b@c'"
    )


def test_a_command_has_the_name_of_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/shims/rabbitmqctl", "status"])
    assert own_program.same_command({}) == "rabbitmqctl status"
    monkeypatch.setattr(sys, "argv", ["/src/amqp_broker/__main__.py", "attention"])
    assert own_program.same_command({}) == "amqp-broker attention"
