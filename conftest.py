"""Which tests stay together where several workers share them, as `make test` has it: a file's, and who shares a fixture
that is dear to start."""

from __future__ import annotations

import pytest

# Of a session: Spark, two brokers with the scenarios that wait for seconds, two with their management, a container.
DEAR = ("spark", "stage", "pair", "image", "driver", "worker")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        shared = next((name for name in DEAR if name in getattr(item, "fixturenames", ())), None)
        item.add_marker(pytest.mark.xdist_group(shared or item.nodeid.partition("::")[0]))
