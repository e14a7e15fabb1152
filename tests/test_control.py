from __future__ import annotations

import os
from pathlib import Path

import pytest

from amqp_broker.control import control_folder, control_socket, is_exposed

ANOTHER_USER = 12345
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")


def test_the_folder_is_as_given() -> None:
    assert control_folder({"AMQP_BROKER_RUNTIME_DIR": "/run/x", "XDG_RUNTIME_DIR": "/run/user/1"}) == "/run/x"


def test_a_users_own_folder_is_taken_else() -> None:
    assert control_folder({"XDG_RUNTIME_DIR": "/run/user/1"}) == "/run/user/1/amqp-broker"


def test_without_one_the_folder_is_named_after_the_user() -> None:
    assert Path(control_folder({})).name.startswith("amqp-broker-")


def test_a_socket_is_named_after_the_port() -> None:
    assert control_socket("/run/x", 5672) == "/run/x/5672.sock"


@pytest.mark.parametrize(("mode", "expected"), [(0o700, False), (0o755, False), (0o770, True), (0o707, True)])
def test_a_folder_that_others_can_write_is_exposed(tmp_path: Path, mode: int, expected: bool) -> None:
    tmp_path.chmod(mode)
    assert is_exposed(tmp_path) is expected


@needs_root
def test_a_folder_of_another_user_is_exposed(tmp_path: Path) -> None:
    os.chown(tmp_path, ANOTHER_USER, ANOTHER_USER)
    assert is_exposed(tmp_path)


@needs_root
def test_a_link_of_another_user_is_exposed_even_if_it_leads_to_an_own_folder(tmp_path: Path) -> None:
    own, link = tmp_path / "own", tmp_path / "link"
    own.mkdir(mode=0o700)
    link.symlink_to(own)
    assert not is_exposed(link)
    os.lchown(link, ANOTHER_USER, ANOTHER_USER)
    assert is_exposed(link)
