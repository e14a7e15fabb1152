from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqp_broker.store.address_space import MAP_BYTES, map_bytes

LIMITED = """
import logging, resource, sys
from pathlib import Path

from amqp_broker.broker.broker import Broker
from amqp_broker.store.store import Store

logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000,) * 2)
store = Store(Path(sys.argv[1]))
print(store.environment.map_bytes)
"""


def test_the_map_is_large_where_the_address_space_is_not_limited() -> None:
    assert map_bytes() == MAP_BYTES == 1 << 40


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the address space")
def test_a_store_opens_in_a_limited_address_space(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "store")]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert run.stdout == "499998720\n"
    assert run.stderr == (
        "the address space is limited to 2000000000 bytes (ulimit -v), so the store holds 499998720 bytes at most\n"
    )
