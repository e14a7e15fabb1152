"""The second archive of a checkpoint is refused with the name of the first, until that ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqp_broker.pipeline.archive_lock import locked
from amqp_broker.pipeline.lake_table import LakeBusy

HOLDER = """
import sys
from amqp_broker.pipeline.archive_lock import locked
with locked(sys.argv[1], "trace", "the archive 'trace' (process 7)"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDER, str(tmp_path)]
    holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    refused = r"^the archive 'trace' .process 7. writes to this lake from the same checkpoint$"
    with pytest.raises(LakeBusy, match=refused), locked(str(tmp_path), "trace", "me"):
        pass
    with locked(str(tmp_path), "other", "me"):
        pass
    holder.kill()
    holder.communicate()
    with locked(str(tmp_path), "trace", "me"), pytest.raises(LakeBusy, match=r"^me writes"):
        locked(str(tmp_path), "trace", "you").__enter__()


def test_an_object_store_has_no_locks() -> None:
    with locked("s3a://lake", "trace", "me"), locked("s3a://lake", "trace", "you"):
        pass
