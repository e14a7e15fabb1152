"""Jobs with kiwiPy, the messages of AiiDA: `serve` works them off, `submit FIRST COUNT SIZE` sends some."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from hashlib import sha256
from typing import Any

from kiwipy.rmq import RmqThreadCommunicator


def encoded(body: Any) -> bytes:
    return json.dumps(body).encode()


def connected() -> RmqThreadCommunicator:
    return RmqThreadCommunicator.connect(
        {"url": f"{os.environ['AMQP_URL']}?reconnect_interval=1"},
        task_queue="jobs",
        task_prefetch_count=10,
        # YAML, the default, takes half a minute for a large job.
        encoder=encoded,
        decoder=json.loads,
    )


def work(_: RmqThreadCommunicator, job: dict[str, Any]) -> None:
    time.sleep(0.005)
    print("done", job["number"], sha256(job["text"].encode()).hexdigest()[:8], flush=True)


def serve() -> None:
    with connected() as communicator:
        communicator.add_task_subscriber(work)
        print("ready", flush=True)
        threading.Event().wait()


def submit(first: int, count: int, size: int) -> None:
    with connected() as communicator:
        for number in range(first, first + count):
            communicator.task_send({"number": number, "text": "x" * size}, no_reply=True)
            print("accepted", number, flush=True)
            time.sleep(0.005)


if __name__ == "__main__":
    verb, *numbers = sys.argv[1:]
    if verb == "serve":
        serve()
    else:
        submit(*map(int, numbers))
