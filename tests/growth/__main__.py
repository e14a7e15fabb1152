"""Print the lines of each row with n, 2n and 4n things: in all, and in the longest turn.

python -m tests.growth [-v] [PART OF A NAME]

With -v, show the lines of code that grow in the longest turn, too.
"""

from __future__ import annotations

import sys
import time
import traceback

from tests.growth.table import Row, growing_lines, judged, measure
from tests.growth.test_growth import ROWS
from tests.growth.world import small_scale

IS_VERBOSE = "-v" in sys.argv


def main(part: str = "") -> None:
    for row in ROWS:
        if part in row.name:
            with small_scale():
                show(row)


def show(row: Row) -> None:
    begun = time.monotonic()
    try:
        found = measure(row)
    except Exception:
        print(f"FAILS {row.name}: {traceback.format_exc(limit=-2)}")
        return
    grows = judged(row, *found)
    works, longest = [one.work for one in found], [one.longest for one in found]
    took_s = time.monotonic() - begun
    print(f"{'GROWS' if grows else '     '} {row.name:70} {works!s:28} {longest!s:24} {took_s:.2f} s", flush=True)
    if grows and IS_VERBOSE:
        print(*growing_lines(row), sep="\n")


if __name__ == "__main__":
    main(*(argument for argument in sys.argv[1:] if argument != "-v"))
