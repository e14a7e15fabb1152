"""What all programs here say to the harness: see `compat/matrix/playing.py` for the other side of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

URL, TLS_URL, CA_FILE = os.environ["AMQP_URL"], os.environ["AMQPS_URL"], os.environ["CA_FILE"]
WRONG_URL = URL.replace("guest:guest@", "guest:wrong@")
MANAGEMENT_URL = os.environ["MANAGEMENT_URL"]
PATIENCE_S = 15.0
# How long nothing has to happen for it to be taken for nothing.
QUIET_S = 0.3


class Unsupported(Exception):
    """Why this client has no way to do that."""


def main(scenarios: Mapping[str, Callable[[], object]]) -> None:
    """Play those that are asked for; one that is not among `scenarios` is not the client's business."""
    for scenario in sys.argv[1:]:
        try:
            if scenario not in scenarios:
                raise Unsupported("not what this library is for")
            scenarios[scenario]()
            outcome = "ok"
        except Unsupported as reason:
            outcome = f"unsupported {reason}"
        except Exception as error:
            outcome = "failed " + " ".join(f"{type(error).__name__}: {error}".split())
        print(f"RESULT {scenario} {outcome}", flush=True)


def unsupported(reason: str) -> Callable[[], None]:
    """A scenario that the client cannot play."""

    def refuse() -> None:
        raise Unsupported(reason)

    return refuse


def ask(what: str) -> None:
    """Have the broker restarted ("RESTART") or all connections closed ("CLOSE")."""
    print(what, flush=True)
    assert sys.stdin.readline() == "DONE\n", f"the harness did not {what}"


def name(stem: str) -> str:
    """A name of a queue or exchange that nobody else uses."""
    return f"{os.environ['PREFIX']}.{stem}"
