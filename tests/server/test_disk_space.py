from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from amqp_broker.server import disk_space


def test_the_free_space_is_what_python_says_of_the_file_system(tmp_path: Path) -> None:
    # Other programs write to it, too.
    assert disk_space.free_bytes(tmp_path) == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.2)


def test_a_missing_folder_has_no_free_space(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        disk_space.free_bytes(tmp_path / "missing")
