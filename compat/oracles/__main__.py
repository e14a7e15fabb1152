"""`python -m compat.oracles [NAME ...]`: have the oracles on this machine, and print their exact versions."""

from __future__ import annotations

import argparse
import signal
import sys

from compat.oracles.debian_root import Unavailable
from compat.oracles.oracle import ORACLES, version_in

UNAVAILABLE = 69  # sysexits.h: a requirement is missing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compat.oracles", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all if none is given: {', '.join(ORACLES)}")
    names = parser.parse_args().names or list(ORACLES)
    if unknown := [name for name in names if name not in ORACLES]:
        parser.error(f"no oracle is called {', '.join(unknown)}")
    # Remove what is half installed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    code = 0
    for name in names:
        try:
            root = ORACLES[name].have()
        except Unavailable as reason:
            print(reason, file=sys.stderr)
            code = UNAVAILABLE
        else:
            print(f"RabbitMQ {version_in(root)} is in {root}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
