"""Makes docs/images/demo.svg, the picture of the confirm demo.

    python -m docs.demo_picture            # play the demo, keep the figures of one moment in demo.json, and draw them
    python -m docs.demo_picture --draw     # draw the figures of demo.json again

The same seed gives the same faults, and the same figures give the same picture.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.terminal_theme import MONOKAI

from amqp_broker.cli.own.demo import broker
from amqp_broker.demo.coloured_screen import live
from amqp_broker.demo.fault_plan import fault_plan
from amqp_broker.demo.figures import NOW, result
from amqp_broker.demo.strategies import STRATEGIES

IMAGES: Final = Path(__file__).parent / "images"
COMMAND: Final = "amqp-broker demo confirms --strategy all"
COLUMNS, ROWS = 100, 44
MESSAGES, WINDOW, RATE = 400, 40, 250
SEED: Final = 4
# Strategies that have ended, and the one that is shown while it runs.
ENDED, SHOWN = ("naive", "sync", "window"), "async"


def play(seed: int) -> dict[str, Any]:
    """Play the demo; return its figures at a fault in the last third of the last strategy."""
    from amqp_broker.demo.strategy_run import StrategyRun

    results: list[dict[str, Any]] = []
    moments: list[dict[str, Any]] = []

    def on_tick(figures: dict[str, Any]) -> None:
        is_late = figures["confirmed"] * 3 > figures["messages"] * 2
        if is_late and figures["in_flight"] and any(event["state"] == NOW for event in figures["plan"]):
            moments.append(figures)

    with tempfile.TemporaryDirectory() as folder, broker(folder, None) as running:
        restart = partial(running.restart, kill=True)
        for name in (*ENDED, SHOWN):
            moments.clear()
            plan = fault_plan(MESSAGES, seed)
            run = StrategyRun(running, STRATEGIES[name], plan, MESSAGES, WINDOW, RATE, on_tick, restart)
            proof = run.run()
            results.append(result(run.figures(), proof.as_dict()))
    moment = moments[len(moments) // 2]
    return {**moment, "results": results[: len(ENDED)]}


def draw(figures: dict[str, Any]) -> str:
    """Return the picture as SVG, which loads nothing from elsewhere."""
    console = Console(
        file=io.StringIO(), record=True, width=COLUMNS, height=ROWS, force_terminal=True, color_system="truecolor"
    )
    console.print(live(figures, COLUMNS, ROWS))
    svg = console.export_svg(title=COMMAND, theme=MONOKAI, unique_id="demo")
    begin, end = svg.index("@font-face"), svg.rindex("@font-face")
    end = svg.index("}", end) + 1
    return svg[:begin].rstrip() + "\n" + svg[end:].replace("Fira Code, monospace", "ui-monospace, monospace") + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.demo_picture", description=__doc__)
    parser.add_argument("--draw", action="store_true", help="draw the figures of demo.json again")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the plan of faults")
    options = parser.parse_args()
    figures = IMAGES / "demo.json"
    if not options.draw:
        figures.write_text(json.dumps(play(options.seed), indent=1) + "\n", "utf-8")
    (IMAGES / "demo.svg").write_text(draw(json.loads(figures.read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    main()
