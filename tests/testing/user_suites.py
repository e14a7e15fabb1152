"""Running test suites as users have them: pytest in a process of its own, with the plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

# pytester unloads the modules that its tests import first, which would then be imported twice.
import amqp_broker.management.application
import amqp_broker.testing.embedded_broker  # noqa: F401
from tests.forking.server import forked

ROOT = Path(__file__).parents[2]
# Whatever else is installed is no part of the test, and slow to load.
PLUGINS = ("amqp_broker.testing.plugin", "pytest_asyncio.plugin", "xdist.plugin")

INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""


class Suite:
    """A folder with tests; `run` runs all of them."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        self.pytester = pytester
        pytester.makefile(".ini", pytest=INI)

    def run(self, tests: str = "", *options: str) -> pytest.RunResult:
        if tests:
            self.pytester.makepyfile(test_it="import pika\nimport pytest\n" + tests)
        loaded = [word for plugin in PLUGINS for word in ("-p", plugin)]
        folder = f"--basetemp={self.pytester.path / 'basetemp'}"
        return self.pytester.run(*forked("pytest"), *loaded, "-p", "no:cacheprovider", folder, *options, timeout=100)
