"""Play scenarios and print transcripts: `python -m compat.differential --only prefetch --show both`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from compat.brokers import AmqpBroker, BrokerProcess
from compat.differential.comparing import problems
from compat.differential.lab import SCENARIOS, Scenario
from compat.differential.playing import Playing
from compat.differential.suite import WIRE
from compat.oracle.records import Seen, load
from compat.oracles.rabbitmq import EXCHANGE_PLUGINS, RabbitMQ


def main() -> int:
    options = _options()
    chosen = [scenario for scenario in SCENARIOS.values() if options.only in scenario.question]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if options.live:
            theirs = _played(stack, RabbitMQ(folder / "rabbitmq", plugins=EXCHANGE_PLUGINS), chosen)
            recorded: Seen = {question: [lines] for question, lines in theirs.items()}
        else:
            recorded = load(WIRE)
        amqp_broker = _played(stack, AmqpBroker(folder / "amqp-broker"), chosen, options.port)
        failed = sum(_print(scenario, recorded, amqp_broker[scenario.question], options.show) for scenario in chosen)
    print(f"{len(chosen)} scenarios, {failed} with problems", file=sys.stderr)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat.differential", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose area/name contains this")
    parser.add_argument(
        "--show",
        choices=["rabbitmq", "amqp-broker", "both", "problems"],
        default="problems",
        help="whose transcripts to print, or only what differs and is not listed (the default)",
    )
    parser.add_argument("--live", action="store_true", help="play at a RabbitMQ, too, instead of reading the records")
    parser.add_argument("--port", type=int, help="use the broker on 127.0.0.1:PORT instead of starting one")
    return parser.parse_args()


def _played(stack: ExitStack, broker: BrokerProcess, chosen: list[Scenario], port: int | None = None) -> Playing:
    if port:
        broker.port = port
    else:
        stack.callback(broker.kill)
        broker.start()
    return Playing(broker, chosen)


def _print(scenario: Scenario, recorded: Seen, amqp_broker: list[str], show: str) -> bool:
    """Print the requested transcripts; return whether the scenario has problems."""
    theirs = recorded.get(scenario.question, [])
    found = problems(scenario, theirs, amqp_broker)
    if found or show != "problems":
        print(f"# {scenario.question}")
    shown = [("rabbitmq", lines) for lines in theirs] + [("amqp-broker", amqp_broker)]
    for name, lines in shown:
        if show in ("both", name):
            print(f"## {name}", *lines, "", sep="\n")
    print("".join(f"{problem}\n" for problem in found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
