"""Applications: each folder of compat/applications declares one in its `row.py`.

An application has a durable queue of jobs. The broker is in the variable AMQP_URL. Its program has two verbs:

    serve                      works until SIGTERM
    submit FIRST COUNT SIZE    sends numbered jobs, each with a text of SIZE letters x

`serve` prints `ready`, and `done NUMBER DIGEST` for each job before it acks it. The digest is the first eight letters
of the text's SHA-256. `submit` prints `accepted NUMBER` when the framework says that the broker has a job, and ends
with another exit code than 0 if one may not have arrived. Both print what their framework logs as well.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from compat.matrix.rows import Client, Row

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Application(Row):
    """A row whose command takes a verb: see the top of this file."""

    # The queue of its jobs.
    queue: str = "jobs"
    # The version of RabbitMQ that it is compared with.
    oracle: str = "4.3"
    # False if the text of a job is not in its message.
    sends_texts: bool = True
    # A pattern of the text in which it says why it cannot work. By default, the broker's reply text.
    refusal: str = r"(ACCESS_REFUSED|NOT_ALLOWED|PRECONDITION_FAILED) - [^()\n]+"


def applications() -> list[Client]:
    """Return the applications by name."""
    found = [Client(_declared(path), path.parent) for path in HERE.glob("*/row.py")]
    return sorted(found, key=lambda client: client.row.name)


def _declared(path: Path) -> Application:
    spec = importlib.util.spec_from_file_location(f"compat_application_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    declared = module.APPLICATION
    assert isinstance(declared, Application)
    return declared
