"""A program that consumes and settles nothing: `python -m tests.adversity.stalled_consumer PORT QUEUE COUNT`."""

from __future__ import annotations

import sys

from pamqp import commands

from tests.client import Client


def main(port: int, queue: str, count: int) -> None:
    client = Client(port).open()
    client.call(commands.Basic.Qos(prefetch_count=count))
    client.consume(queue)
    for _ in range(count):
        client.expect_delivery()
    print("received", flush=True)
    client.socket.settimeout(None)
    client.next()


main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
