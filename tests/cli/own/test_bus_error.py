from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from amqp_broker.exit_codes import EX_IOERR

READ_BEYOND_THE_END = """
import mmap, os, sys
from pathlib import Path
from amqp_broker.cli.own import bus_error

bus_error.explain(Path(sys.argv[1]))
with open(sys.argv[1], "r+b") as file:
    pages = mmap.mmap(file.fileno(), 0)
    os.ftruncate(file.fileno(), 0)
    pages[0]
"""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGBUS")
def test_a_page_that_cannot_be_read_ends_the_process_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "data.mdb"
    path.write_bytes(bytes(4096))
    ended = subprocess.run(
        [sys.executable, "-c", READ_BEYOND_THE_END, str(path)], capture_output=True, encoding="utf-8", check=False
    )
    assert ended.returncode == EX_IOERR
    assert f"'{path}' cannot be read: the disk gives no answer for a page" in ended.stderr
