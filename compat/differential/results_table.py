"""The table of `docs/conformance.md`: `python -m compat.differential.results_table` plays all, and writes it anew.

Each profile of this broker is compared with its versions, including random programs and the HTTP API. RabbitMQ
agrees in all of them (`make verify` asks), so its column has the numbers. The column of GarageMQ is kept as it is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from compat.brokers import AmqpBroker
from compat.oracle.profiles import ORACLES_OF

PAGE = Path(__file__).parents[2] / "docs/conformance.md"
HEAD = "| Chapter | RabbitMQ 3.10, 4.0, 4.3 |"
FAILED = 1

# The texts of a row's cells, by title of the column; and rows by chapter.
Cells = dict[str, str]
Table = dict[str, Cells]


def read(page: str) -> Table:
    """Return the rows of the table in a page."""
    lines = _lines(page)
    titles = _cells(lines[0])[1:]
    rows = [_cells(line) for line in lines[2:]]
    return {row[0]: dict(zip(titles, row[1:], strict=True)) for row in rows}


def replaced(page: str, table: Table) -> str:
    """Return the page with another table."""
    titles = [*next(iter(table.values()))]
    lines = [_row(["Chapter", *titles]), "|---|" + "--:|" * len(titles)]
    lines += [_row([chapter, *(cells[title] for title in titles)]) for chapter, cells in table.items()]
    return page.replace("\n".join(_lines(page)), "\n".join(lines))


def _lines(page: str) -> list[str]:
    lines = page.splitlines()
    begin = next(index for index, line in enumerate(lines) if line.startswith(HEAD))
    end = next(index for index in range(begin, len(lines)) if not lines[index].startswith("|"))
    return lines[begin:end]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def counted(report: bytes) -> dict[str, tuple[int, int, int]]:
    """Return the numbers that agree, differ and are skipped by chapter, from a report for CI servers."""
    found = {}
    for suite in ElementTree.fromstring(report).iter("testsuite"):
        tests, failures, skipped = (int(suite.get(name, "0")) for name in ("tests", "failures", "skipped"))
        found[suite.get("name", "")] = tests - failures - skipped, failures, skipped
    return found


def cell(agree: int, differ: int, skipped: int) -> str:
    return f"{agree} / {differ} / {skipped}" if differ or skipped else str(agree)


def count_of(text: str) -> tuple[int, ...]:
    """Return the numbers of a cell, of which the last ones may be absent."""
    return tuple(int(number) for number in text.split(" / "))


def measured(profile: str) -> dict[str, tuple[int, int, int]]:
    """Play all at a broker with this profile."""
    with tempfile.TemporaryDirectory() as folder:
        broker, report = AmqpBroker(Path(folder), profile=profile), Path(folder, "junit.xml")
        with broker.running():
            url = f"http://{broker.host}:{broker.management_port}"
            version = ORACLES_OF[profile][0] if len(ORACLES_OF[profile]) == 1 else profile
            options = ["--as", version, "--duel", "--management", url, "--junit", str(report)]
            command = [sys.executable, "-m", "amqp_broker", "conformance", broker.url, *options]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
            if done.returncode > FAILED:
                raise SystemExit(f"{' '.join(command)} has ended with {done.returncode}")
        return counted(report.read_bytes())


def renewed(table: Table, columns: Mapping[str, Mapping[str, tuple[int, int, int]]]) -> Table:
    """Return the table with these columns, by profile; other cells are kept."""
    new: Table = {}
    chapters = sorted({chapter for column in columns.values() for chapter in column})
    others = [title for title in next(iter(table.values())) if title.startswith("GarageMQ")]
    for chapter in [*chapters, "All"]:
        counts = {
            profile: column.get(chapter, (0, 0, 0)) if chapter != "All" else _sum(column)
            for profile, column in columns.items()
        }
        # A profile between two versions is compared by the programs that both answer alike.
        largest = max(sum(count) for count in counts.values())
        new[chapter] = {"RabbitMQ 3.10, 4.0, 4.3": str(largest)}
        new[chapter] |= {f"`--compat {profile}`": cell(*count) for profile, count in counts.items()}
        new[chapter] |= {title: table.get(chapter, {}).get(title, "…") for title in others}
    return new


def _sum(column: Mapping[str, tuple[int, int, int]]) -> tuple[int, int, int]:
    agree, differ, skipped = (sum(numbers) for numbers in zip(*column.values(), strict=True))
    return agree, differ, skipped


def main() -> None:
    argparse.ArgumentParser(prog="python -m compat.differential.results_table", description=__doc__).parse_args()
    page = PAGE.read_text("utf-8")
    table = renewed(read(page), {profile: measured(profile) for profile in ORACLES_OF})
    PAGE.write_text(replaced(page, table), "utf-8")


if __name__ == "__main__":
    main()
