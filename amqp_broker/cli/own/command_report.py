"""`amqp-broker run --report FILE`: a page about what happened at the broker of a command that failed."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from amqp_broker.cli.shared import node_finder
from amqp_broker.cli.shared.http_api import Api, Unreachable
from amqp_broker.run_report.page import Failure, check, failure_section, remove, write

REPORT: Final = "--report"
# Virtual hosts of a page.
VHOSTS_MAX: Final = 20


class NoReport(Exception):
    """The page cannot be written; the text is the reason."""


def without_report(options: Sequence[str]) -> tuple[str, list[str]]:
    """Return the file of the report and the options of serve. The report of an earlier run is removed.

    Raise NoReport for an invalid file.
    """
    path, others = "", []
    words = iter(options)
    for word in words:
        name, equals, value = word.partition("=")
        if name != REPORT:
            others.append(word)
            continue
        path = value if equals else next(words, "")
        if not path:
            raise NoReport(f"{REPORT} needs the name of a file, such as report.html")
        try:
            check(Path(path))
            # It would be taken for that of this run.
            remove(Path(path))
        except OSError as error:
            raise NoReport(f"cannot write {path}: {error.strerror}") from None
    return path, others


def report(path: str, command: Sequence[str], code: int, environment: Mapping[str, str]) -> str:
    """Write the page of a command that failed; return a sentence about it. The environment leads to the broker.

    Raise NoReport.
    """
    name = shlex.join(command)
    reports, remark = _reports(environment)
    section = failure_section(Failure(name, _ending(code), reports=reports, remark=remark))
    try:
        write(Path(path), "A command that failed", [(name, section)])
    except OSError as error:
        raise NoReport(f"cannot write {path}: {error.strerror}") from None
    return f"a page about the failed command is in {path}"


def _ending(code: int) -> str:
    if code > 128:
        try:
            return f"The command ended with exit code {code}, that of {signal.Signals(code - 128).name}."
        except ValueError:
            pass
    return f"The command ended with exit code {code}."


def _reports(environment: Mapping[str, str]) -> tuple[list[dict[str, Any]], str]:
    """Return the reports of the broker's vhosts, and a remark about those that are missing."""
    found: list[dict[str, Any]] = []
    try:
        api = Api(node_finder.find("", environment).place)
        vhosts = [row["name"] for row in api.get("/api/vhosts?columns=name").value]
        for name in vhosts[:VHOSTS_MAX]:
            # A vhost may go meanwhile.
            if (answer := api.get(f"/_broker/report/{quote(name, safe='')}")).is_ok:
                found.append(answer.value)
    except (node_finder.NotRunning, node_finder.UntrustedFolder, Unreachable):
        return found, "The broker did not answer on its control socket."
    more = len(vhosts) - VHOSTS_MAX
    return found, f"{more} more virtual hosts are not shown." if more > 0 else ""
