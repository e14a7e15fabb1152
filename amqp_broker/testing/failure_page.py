"""The page of a run of pytest about the tests that failed: `pytest --amqp-report=report.html`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from amqp_broker.testing.embedded_vhost import EmbeddedVHost
    from amqp_broker.testing.external_broker import ExternalVHost


class FailurePage:
    """Collects the sections of failed tests, and writes the page at the end. A run without failures leaves no page.

    Raise OSError if the page could not be written.
    """

    def __init__(self, path: Path) -> None:
        from amqp_broker.run_report.page import check

        check(path)
        self.path = path
        self._failures: list[tuple[str, str]] = []
        self._remark = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A plugin that runs a test again has changed the outcome.
        if report.failed and hasattr(report, "amqp_failure"):
            self._failures.append((report.nodeid, report.amqp_failure))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        from amqp_broker.run_report.page import remove, write

        count = len(self._failures)
        try:
            if count:
                title = f"{count} failed test{'s' if count > 1 else ''} with a broker"
                write(self.path, title, self._failures)
                self._remark = f"amqp-broker: a page about {title} is in {self.path}"
            elif exitstatus == pytest.ExitCode.OK and not session.config.getoption("collectonly"):
                remove(self.path)
        except OSError as error:
            self._remark = f"amqp-broker: cannot write {self.path}: {error.strerror}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._remark:
            terminalreporter.write_line(self._remark)


def start_log(vhost: EmbeddedVHost | ExternalVHost) -> None:
    """Log the events of a vhost: the page shows the lives of its messages."""
    from amqp_broker.testing.embedded_vhost import EmbeddedVHost

    if isinstance(vhost, EmbeddedVHost):
        vhost.event_log()


def attach(report: pytest.TestReport, vhost: EmbeddedVHost | ExternalVHost) -> None:
    """Add the section of a failed test to its report: pytest-xdist sends reports with their attributes."""
    from amqp_broker.run_report.page import Failure, failure_section
    from amqp_broker.testing.embedded_vhost import EmbeddedVHost

    crash = getattr(report.longrepr, "reprcrash", None)
    assertion = report.longreprtext if crash is None else f"{crash.message}\n{crash.path}:{crash.lineno}"
    texts = [("Traceback", report.longreprtext), *report.sections]
    reports, remark = [], ""
    if not isinstance(vhost, EmbeddedVHost):
        remark = "Only the embedded broker says what happened to messages."
    else:
        try:
            reports = [vhost.report()]
        except Exception as error:
            # The test has deleted the vhost or stopped the broker, say. The other tests go on.
            remark = f"The messages cannot be shown: {error}"
    section = failure_section(Failure(report.nodeid, assertion, texts, reports, remark))
    report.amqp_failure = section  # type: ignore[attr-defined]
