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
