"""Play scenarios and print their transcripts: `python -m compat.differential --only prefetch`.

`python -m compat.oracle differences wire --show` prints what differs.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path

from amqp_broker.conformance.lab import SCENARIOS, Scenario
from amqp_broker.conformance.playing import Playing
from amqp_broker.settings.profiles import DEFAULT, PROFILES
from compat.brokers import AmqpBroker, BrokerProcess
from compat.differential.suite import WIRE
from compat.oracle.records import Seen, load
from compat.oracles.oracle import ORACLES
from compat.oracles.rabbitmq import EXCHANGE_PLUGINS, RabbitMQ


def main() -> None:
    options = _options()
    chosen = [scenario for scenario in SCENARIOS.values() if options.only in scenario.question]
    oracle = ORACLES[options.oracle]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        recorded: Seen = load(WIRE, oracle.name)
        if options.live:
            theirs = _played(stack, RabbitMQ(folder / "rabbitmq", plugins=EXCHANGE_PLUGINS, oracle=oracle), chosen)
            recorded = {question: [lines] for question, lines in theirs.items()}
        amqp_broker = AmqpBroker(folder / "amqp-broker", profile=options.profile)
        amqp_broker.declares_durable = oracle.declares_durable
        ours = _played(stack, amqp_broker, chosen, options.port)
        for scenario in chosen:
            print(f"# {scenario.question}")
            for lines in recorded.get(scenario.question, []):
                print(f"## RabbitMQ {oracle.name}", *lines, "", sep="\n")
            print("## amqp-broker", *ours[scenario.question], "", sep="\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat.differential", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose area/name contains this")
    parser.add_argument("--profile", choices=PROFILES, default=DEFAULT, help=f"amqp-broker's (default {DEFAULT})")
    parser.add_argument("--oracle", choices=ORACLES, default="4.0", help="the version of RabbitMQ (default 4.0)")
    parser.add_argument("--live", action="store_true", help="play at a RabbitMQ, too, instead of reading the records")
    parser.add_argument("--port", type=int, help="use the broker on 127.0.0.1:PORT instead of starting one")
    return parser.parse_args()


def _played(stack: ExitStack, broker: BrokerProcess, chosen: list[Scenario], port: int | None = None) -> Playing:
    if port:
        broker.port = port
    else:
        stack.callback(broker.kill)
        broker.start()
    return stack.enter_context(Playing(broker, chosen))


if __name__ == "__main__":
    main()
