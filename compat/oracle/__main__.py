"""`python -m compat.oracle TASK [SUITE ...]`: answers of the oracles, and where this broker differs from them."""

from __future__ import annotations

import argparse
import difflib
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat.oracle import allowed, live_rabbitmq
from compat.oracle.differences_page import PAGE, replaced, section
from compat.oracle.profiles import ORACLES_OF, ask, differences, load_recorded
from compat.oracle.records import recorded_version, save_version
from compat.oracle.suite import Answer, Suite
from compat.oracle.suites import SUITES
from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES, Oracle

UNAVAILABLE = 69  # sysexits.h: a requirement is missing
ALL = "all"


def main() -> int:
    options = _options()
    # Stop the oracle and remove its folder.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if options.task == "page":
        tables = {profile: allowed.load(profile) for profile in ORACLES_OF}
        text = PAGE.read_text("utf-8")
        PAGE.write_text(replaced(text, section(tables, ORACLES_OF)), "utf-8")
        return 0
    if options.task == "differences":
        for profile in [options.profile] if options.profile else list(ORACLES_OF):
            _compare(options, profile)
        return 0
    names = list(ORACLES) if options.oracle == ALL else [options.oracle]
    return max(_ask(options, ORACLES[name]) for name in names)


def _ask(options: argparse.Namespace, oracle: Oracle) -> int:
    """Record or verify the chosen suites of an oracle; return the exit code."""
    try:
        oracle.have()
    except Unavailable as reason:
        print(reason, file=sys.stderr)
        return UNAVAILABLE
    former = recorded_version(oracle.name)
    if options.task == "record" and oracle.version != former and (options.suite or options.only):
        print(f"The records are of RabbitMQ {former or 'no version'}: record all of {oracle.version}", file=sys.stderr)
        return UNAVAILABLE
    print(f"RabbitMQ {oracle.version}, recorded {former or 'never'}", flush=True)
    found, asked = 0, 0
    for name in options.suite or SUITES:
        with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
            try:
                found += _ask_suite(options, SUITES[name], oracle, Path(folder))
            except live_rabbitmq.NothingAskedError as nothing:
                print(nothing, file=sys.stderr)
            else:
                asked += 1
    if options.task == "record" and asked:
        save_version(oracle.name, oracle.version)
    return 1 if found or not asked else 0


def _ask_suite(options: argparse.Namespace, suite: Suite, oracle: Oracle, folder: Path) -> int:
    """Record or verify one suite; return the number of outdated records. Raise NothingAskedError."""
    if options.task == "record":
        news = live_rabbitmq.record(suite, oracle, folder, options.runs, options.only, options.forget)
        print(f"{suite.name}: {len(news)} new answers", *news, sep="\n  ", flush=True)
        return 0
    wrong = live_rabbitmq.untrue(suite, oracle, folder, options.only)
    print(f"{suite.name}: {len(wrong)} records are not true", *wrong, sep="\n", flush=True)
    return len(wrong)


def _compare(options: argparse.Namespace, profile: str) -> None:
    """Print the differences of a profile from its oracles, or from one, with their reasons."""
    oracles = ORACLES_OF[profile] if options.oracle == ALL else (options.oracle,)
    tables = allowed.load(profile)
    for name in options.suite or SUITES:
        suite, recorded = SUITES[name], load_recorded(SUITES[name], oracles)
        with tempfile.TemporaryDirectory(prefix="profile-") as folder:
            answers = ask(suite, profile, oracles, Path(folder))
        found = differences(suite, recorded, answers)
        if options.write:
            tables[name] = allowed.revised(found, tables.get(name, {}))
        table = tables.get(name, {})
        shown = {question: places for question, places in found.items() if options.only in question}
        print(f"{profile}, {name}: {len(shown)} of {len(answers)} differ from RabbitMQ {' and '.join(oracles)}")
        for question, places in shown.items():
            reasons = {place: allowed.reason_of(question, place, table) or "not listed" for place in sorted(places)}
            print(f"  {question}", *(f"    {place} ({reason})" for place, reason in reasons.items()), sep="\n")
            if options.show and question in answers:
                theirs = [answer for seen in recorded for answer in seen.get(question, [])]
                print(*_diffs(theirs, answers[question]), sep="\n")
    if options.write:
        allowed.save(profile, tables)


def _diffs(theirs: Sequence[Answer], ours: Answer) -> list[str]:
    """Return a diff from each recorded answer."""
    here = json.dumps(ours, indent=1, ensure_ascii=False, sort_keys=True).splitlines()
    there = [json.dumps(answer, indent=1, ensure_ascii=False, sort_keys=True).splitlines() for answer in theirs]
    return [line for lines in there for line in difflib.unified_diff(lines, here, "RabbitMQ", "amqp-broker", "", "", 1)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat.oracle", description=__doc__)
    parser.add_argument(
        "task",
        choices=["record", "verify", "differences", "page"],
        help="write the records; fail where an oracle answers otherwise; print what amqp-broker answers otherwise; or "
        "write the allowed differences into compat/DIFFERENCES.md",
    )
    parser.add_argument("suite", nargs="*", help=f"all if none is given: {', '.join(SUITES)}")
    parser.add_argument("--oracle", choices=[*ORACLES, ALL], default=ALL, help="the version to ask (default: all)")
    parser.add_argument("--only", default="", metavar="TEXT", help="questions that contain this")
    recording = parser.add_argument_group("record")
    recording.add_argument(
        "--runs", type=int, default=2, metavar="COUNT", help="ask so many times, for answers that differ (default 2)"
    )
    recording.add_argument("--forget", action="store_true", help="of what is asked, keep no earlier answer")
    comparing = parser.add_argument_group("differences")
    comparing.add_argument("--profile", choices=ORACLES_OF, help="the profile of amqp-broker (default: all)")
    comparing.add_argument("--show", action="store_true", help="print both answers where they differ")
    comparing.add_argument(
        "--write",
        action="store_true",
        help="update compat/allowed: remove what is mended, add the rest as open",
    )
    options = parser.parse_args()
    unknown = [name for name in options.suite if name not in SUITES]
    if options.runs < 1:
        parser.error("--runs must be 1 at least")
    if options.write and (options.only or options.oracle != ALL):
        parser.error("--write needs all questions and all oracles")
    if unknown:
        parser.error(f"no suite is called {', '.join(unknown)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
