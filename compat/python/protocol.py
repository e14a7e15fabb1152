"""The programs' protocol with the harness, whose other side is `compat/matrix/playing.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

URL, TLS_URL, CA_FILE = os.environ["AMQP_URL"], os.environ["AMQPS_URL"], os.environ["CA_FILE"]
WRONG_URL = URL.replace("guest:guest@", "guest:wrong@")
MANAGEMENT_URL = os.environ["MANAGEMENT_URL"]
PATIENCE_S = 15.0
# Silence after which nothing more is expected.
QUIET_S = 0.3


class Unsupported(Exception):
    """This client does not support a scenario; the text is the reason."""


def main(scenarios: Mapping[str, Callable[[], object]]) -> None:
    """Play the requested scenarios; those missing from `scenarios` are unsupported."""
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
    """Return a scenario that the client does not support."""

    def refuse() -> None:
        raise Unsupported(reason)

    return refuse


def ask(what: str) -> None:
    """Request a restart of the broker ("RESTART") or a close of all connections ("CLOSE")."""
    print(what, flush=True)
    assert sys.stdin.readline() == "DONE\n", f"the harness did not {what}"


def deaths(headers: Mapping[str, Any] | None) -> list[tuple[str, str, int]]:
    """Return the history of a dead-lettered message: queue, reason and count, the newest first."""
    return [(death["queue"], death["reason"], death["count"]) for death in (headers or {})["x-death"]]


def name(stem: str) -> str:
    """Return a unique name of a queue or exchange."""
    return f"{os.environ['PREFIX']}.{stem}"
