"""How workers share the tests, as `make test` has it: what takes longest first, what shares something on one of them.

xdist's own groups are no way to say so: it writes them into the ids of tests, which pytest 9.2 does not let it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

# The tests that use the Spark of the session.
SPARK = ("tests/pyspark_amqp/", "tests/pipeline/")
# Many minutes in one file, whose tests share nothing, or no more than a broker that is started at once.
APART = ("tests/docs/test_pages.py", "tests/simulation/", "compat/matrix/test_clients.py")
# What is begun first.
LONG = (*SPARK, "tests/docs/test_pages.py", "tests/docs/test_examples.py", "compat/")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def scope_of(nodeid: str) -> str:
    """What runs on one worker: a test, a file, or a folder with a fixture that is dear to start."""
    file = nodeid.partition("::")[0]
    if file.startswith(APART):
        return nodeid
    if file.startswith(SPARK):
        return "Spark"
    is_folder = file.startswith(("compat/", "tests/page/", "tests/container/"))
    return file.rpartition("/")[0] if is_folder else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    # In the order of collection, not those first that have most tests.
    config.option.loadscopereorder = False
    return Together(config, log)
