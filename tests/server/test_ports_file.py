from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from amqp_broker.server.ports_file import write_ports


def test_the_ports_are_written_as_json(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    write_ports(path, {"amqp": 5672})
    assert json.loads(path.read_text("utf-8")) == {"amqp": 5672}


def test_an_existing_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    path.write_text("x" * 1000, "utf-8")
    with path.open() as old:
        write_ports(path, {"amqp": 5672})
        # The old file is a different one, which stays readable.
        assert old.read() == "x" * 1000
    assert json.loads(path.read_text("utf-8")) == {"amqp": 5672}
    assert list(tmp_path.iterdir()) == [path]


def test_a_symbolic_link_is_kept(tmp_path: Path) -> None:
    link, path = tmp_path / "link", tmp_path / "ports.json"
    link.symlink_to(path)
    write_ports(link, {"amqp": 1})
    assert link.is_symlink()
    assert json.loads(path.read_text("utf-8")) == {"amqp": 1}


def test_the_link_of_another_user_is_not_followed(tmp_path: Path) -> None:
    path, victim = tmp_path / "ports.json", tmp_path / "victim"
    victim.write_text("mine", "utf-8")
    (tmp_path / f".ports.json.{os.getpid()}").symlink_to(victim)
    write_ports(path, {"amqp": 1})
    assert victim.read_text("utf-8") == "mine"
    assert not path.is_symlink()


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_ports(path, {"amqp": 1})
    assert json.loads(os.read(reader, 1000)) == {"amqp": 1}
    os.close(reader)
    assert path.is_fifo()


@pytest.mark.parametrize("name", ["missing/ports.json", "", "file/ports.json"])
def test_an_error_names_the_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    with pytest.raises(OSError) as caught:
        write_ports(path, {"amqp": 1})
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}.*"))


def test_a_ports_file_is_removed_unless_another_process_has_replaced_it(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    mine = write_ports(path, {"amqp": 1})
    assert mine is not None
    theirs = write_ports(path, {"amqp": 1})
    assert theirs is not None
    mine.remove()
    assert path.exists()
    theirs.remove()
    assert not path.exists()
    theirs.remove()
