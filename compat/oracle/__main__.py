"""`python -m compat.oracle record|verify [SUITE ...]`: ask a real RabbitMQ the questions of the suites."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from compat.brokers import RabbitMQ
from compat.oracle import live_rabbitmq
from compat.oracle.records import VERSION
from compat.oracle.suite import Suite
from compat.oracle.suites import SUITES


def main() -> int:
    options = _options()
    if RabbitMQ.version() != VERSION:
        print(f"RabbitMQ {VERSION} is needed; there is {RabbitMQ.version() or 'none'}", file=sys.stderr)
        return 69
    found, asked = 0, 0
    for name in options.suite or SUITES:
        with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
            try:
                found += _do(options, SUITES[name], Path(folder))
            except live_rabbitmq.NothingAskedError as nothing:
                print(nothing, file=sys.stderr)
            else:
                asked += 1
    return 1 if found or not asked else 0


def _do(options: argparse.Namespace, suite: Suite, folder: Path) -> int:
    """Record or verify one suite; return the number of outdated records. Raise NothingAskedError."""
    if options.task == "record":
        news = live_rabbitmq.record(suite, folder, options.runs, options.only, options.forget)
        print(f"{suite.name}: {len(news)} new answers", *news, sep="\n  ", flush=True)
        return 0
    wrong = live_rabbitmq.untrue(suite, folder, options.only)
    print(f"{suite.name}: {len(wrong)} records are not true", *wrong, sep="\n", flush=True)
    return len(wrong)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat.oracle", description=__doc__)
    parser.add_argument(
        "task", choices=["record", "verify"], help="write the records, or fail where RabbitMQ answers otherwise"
    )
    parser.add_argument("suite", nargs="*", help=f"all if none is given: {', '.join(SUITES)}")
    parser.add_argument("--only", default="", metavar="TEXT", help="questions that contain this")
    parser.add_argument(
        "--runs", type=int, default=2, metavar="COUNT", help="ask so many times, for answers that differ (default 2)"
    )
    parser.add_argument("--forget", action="store_true", help="of what is asked, keep no answer of earlier recordings")
    options = parser.parse_args()
    unknown = [name for name in options.suite if name not in SUITES]
    if options.runs < 1:
        parser.error("--runs must be 1 at least")
    if unknown:
        parser.error(f"no suite is called {', '.join(unknown)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
