"""Play scenarios and print what the brokers say: `python -m compat.differential --only prefetch --show both`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from compat.brokers import EXCHANGE_PLUGINS, BrokerProcess, OurBroker, RabbitMQ
from compat.differential import scenarios  # noqa: F401 (registers them)
from compat.differential.comparing import problems
from compat.differential.lab import SCENARIOS, Scenario
from compat.differential.running import OURS, RABBITMQ, Stage

MAKERS: dict[str, Callable[[Path], BrokerProcess]] = {
    RABBITMQ: lambda folder: RabbitMQ(folder, plugins=EXCHANGE_PLUGINS),
    OURS: OurBroker,
}


def main() -> int:
    options = _options()
    chosen = [scenario for scenario in SCENARIOS.values() if options.only in f"{scenario.area}-{scenario.name}"]
    wanted = [options.show] if options.show in MAKERS else [RABBITMQ, OURS]
    with ExitStack() as stack:
        stage = Stage({name: _address(stack, name, options.ports[name]) for name in wanted})
        stage.begin(chosen)
        failed = sum(_play(stage, scenario, options) for scenario in chosen)
    print(f"{len(chosen)} scenarios, {failed} with problems", file=sys.stderr)
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat.differential", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose area-name contains this")
    parser.add_argument(
        "--show",
        choices=[RABBITMQ, OURS, "both", "problems"],
        default="problems",
        help="whose transcripts to print, or only what differs and is not listed (the default)",
    )
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the transcripts to FOLDER, too")
    for name in MAKERS:
        parser.add_argument(f"--{name}-port", type=int, help="use this broker on 127.0.0.1 instead of starting one")
    options = parser.parse_args()
    options.ports = {name: getattr(options, f"{name}_port") for name in MAKERS}
    return options


def _address(stack: ExitStack, name: str, port: int | None) -> tuple[str, int]:
    if port:
        return "127.0.0.1", port
    broker = MAKERS[name](Path(stack.enter_context(tempfile.TemporaryDirectory())))
    stack.callback(broker.kill)
    broker.start()
    return broker.host, broker.port


def _play(stage: Stage, scenario: Scenario, options: argparse.Namespace) -> bool:
    """Play and print one; whether it has problems."""
    transcripts = stage.play(scenario)
    found = list(problems(scenario, transcripts)) if len(transcripts) == 2 else []
    if found or options.show != "problems":
        print(f"# {scenario.area}-{scenario.name}")
    for name, transcript in transcripts.items():
        if options.show in ("both", name):
            print(f"## {name}\n{transcript}")
        if options.save:
            (options.save / name).mkdir(parents=True, exist_ok=True)
            (options.save / name / f"{scenario.name}.txt").write_text(transcript)
    print("".join(f"{problem}\n" for problem in found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
