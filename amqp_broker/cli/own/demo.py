"""`amqp-broker demo confirms`: publishers under a plan of faults, live in the terminal."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from amqp_broker.cli.own.command_error import CommandError
from amqp_broker.cli.shared.standard_streams import leave_interrupted_line
from amqp_broker.demo import screen
from amqp_broker.demo.fault_plan import SEED_MAX, fault_plan
from amqp_broker.demo.figures import for_page, result
from amqp_broker.demo.strategies import STRATEGIES, Strategy
from amqp_broker.exit_codes import EX_UNAVAILABLE
from amqp_broker.management.node.node import Demo

if TYPE_CHECKING:
    from rich.live import Live as Redrawn

    from amqp_broker.server.server import Server
    from amqp_broker.testing import EmbeddedBroker

# The strategy did not keep its promise.
EX_BROKEN: Final = 1
MESSAGES_MAX: Final = 100_000
WINDOW_MAX: Final = 1000
RATE_MAX: Final = 1_000_000
ALL: Final = "all"
PAINT_S: Final = 0.1
# A character of each kind that the coloured view draws.
DRAWN: Final = "✓▶↻✗·▲█━"


@click.group()
def demo() -> None:
    """Demonstrations of the broker."""


@demo.command()
@click.option(
    "--strategy",
    type=click.Choice([*STRATEGIES, ALL]),
    default="async",
    show_default=True,
    help="How to publish; all runs every strategy and compares them.",
)
@click.option(
    "--messages",
    type=click.IntRange(1, MESSAGES_MAX),
    default=1000,
    show_default=True,
    help="Number of messages to publish.",
)
@click.option("--seed", type=click.IntRange(0, SEED_MAX), default=1, show_default=True, help="Seed of the fault plan.")
@click.option(
    "--window",
    type=click.IntRange(1, WINDOW_MAX),
    default=100,
    show_default=True,
    help="Maximum number of unconfirmed messages, for window and async.",
)
@click.option(
    "--rate",
    type=click.IntRange(0, RATE_MAX),
    default=250,
    show_default=True,
    help="Maximum rate in messages per second; 0 means no limit.",
)
@click.option("--plain", is_flag=True, help="Print lines instead of a live screen.")
@click.option(
    "--management-port",
    type=click.IntRange(0, 65535),
    help="Serve the web page of the demo on this port (0: a free one).",
)
def confirms(
    strategy: str, messages: int, seed: int, window: int, rate: int, plain: bool, management_port: int | None
) -> None:
    """Publish to a broker with faults: lost and late confirms, returned messages, cuts and kills.

    At the end, the ledger of the publisher is compared with the queue. The exit code is 0 if the strategy kept its
    promise, and 1 otherwise. The demo starts its own broker with a temporary folder.
    """
    # The demo itself shows what happens to the connections of pika.
    logging.getLogger("pika").addHandler(logging.NullHandler())
    # A signal must not leave the temporary folder behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    view = Plain() if plain or not has_screen() else Coloured() if has_colours() else Live()
    with tempfile.TemporaryDirectory(prefix="amqp-broker-demo-") as folder, broker(folder, management_port) as running:
        display = Display(running, view, management_port is not None)
        chosen = list(STRATEGIES.values()) if strategy == ALL else [STRATEGIES[strategy]]
        for one in chosen:
            display.run(one, messages, seed, window, rate)
        display.is_over = True
        if len(chosen) > 1:
            click.echo()
            view.compare(display.results)
        if management_port is not None and isinstance(view, Live):
            click.prompt("Press Enter to end the demo", default="", show_default=False, prompt_suffix=" ")
    if not all(one["is_held"] for one in display.results):
        sys.exit(EX_BROKEN)


@contextmanager
def broker(folder: str, management_port: int | None) -> Iterator[EmbeddedBroker]:
    """Run a broker with a store in this folder."""
    from amqp_broker.server.listening import CannotListen
    from amqp_broker.testing import EmbeddedBroker

    settings: dict[str, Any] = (
        {"management": False} if management_port is None else {"management_port": management_port}
    )
    try:
        with EmbeddedBroker(data_dir=folder, **settings) as running:
            if management_port is not None:
                address = running.management_url.rpartition("@")[2]
                click.echo(f"The page: http://{address}/#/demo (guest, guest)")
            yield running
    except CannotListen as error:
        raise CommandError(str(error), EX_UNAVAILABLE) from None


def has_screen() -> bool:
    """Return whether the output is a terminal that can be redrawn."""
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def has_colours() -> bool:
    """Return whether a terminal may be given colours, and has the characters of the coloured view."""
    try:
        DRAWN.encode(sys.stdout.encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return not os.environ.get("NO_COLOR")


class Display:
    """The demo in the terminal and on the web page; `results` are those of finished strategies."""

    def __init__(self, running: EmbeddedBroker, view: Plain, has_page: bool) -> None:
        self.results: list[dict[str, Any]] = []
        self._broker, self._view, self._has_page = running, view, has_page
        self.is_over = False
        self._figures: dict[str, Any] = {}

    def run(self, strategy: Strategy, messages: int, seed: int, window: int, rate: int) -> None:
        """Run a strategy to its end."""
        from amqp_broker.demo.strategy_run import StrategyRun

        run = StrategyRun(
            self._broker, strategy, fault_plan(messages, seed), messages, window, rate, self._show, self._restart
        )
        try:
            self._show(run.figures())
            self._publish()
            proof = run.run()
            figures = run.figures()
            self.results.append(result(figures, proof.as_dict()))
            self._show(figures)
        except KeyboardInterrupt:
            self._view.end()
            leave_interrupted_line()
            click.echo(f"Stopped with {run.figures()['confirmed']} of {messages} confirmed.")
            sys.exit(130)
        finally:
            self._view.end()
        self._view.conclude(self.results[-1])

    @property
    def figures(self) -> dict[str, Any]:
        """The latest figures."""
        return self._figures

    def _show(self, figures: dict[str, Any]) -> None:
        self._figures = {**figures, "results": list(self.results)}
        self._view.show(self._figures)

    def _restart(self) -> None:
        self._broker.restart(kill=True)
        self._publish()

    def _publish(self) -> None:
        """Give the figures to the current broker, for its web page."""

        def attach(server: Server) -> None:
            server.node.demo = ShownDemo(self)

        if self._has_page:
            self._broker.ask(attach)


class ShownDemo(Demo):
    """The demo of the command line, as the web page shows it."""

    def __init__(self, display: Display) -> None:
        self._display = display

    def status(self) -> dict[str, Any]:
        state = "done" if self._display.is_over else "running"
        return {"state": state, "reason": "", "choices": None, "figures": for_page(self._display.figures)}

    def start(self, given: Mapping[str, Any]) -> None:
        raise RuntimeError("the demo of the command line is running")

    def stop(self) -> None:
        """Do nothing: the command line ends it."""


class Plain:
    """Prints a line for each new event."""

    def __init__(self) -> None:
        self._before: Mapping[str, Any] | None = None

    def show(self, figures: Mapping[str, Any]) -> None:
        for line in screen.new_lines(figures, self._before):
            click.echo(line)
        self._before = figures

    def end(self) -> None:
        """Do nothing; the lines stay as they are."""

    def conclude(self, result: Mapping[str, Any]) -> None:
        """Print the verdict on a strategy."""
        click.echo("\n".join(screen.verdict(result)))

    def compare(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Print all strategies side by side."""
        click.echo("\n".join(screen.table(results)))


class Live(Plain):
    """Redraws the screen over its previous state, in ASCII."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self._next_s = 0.0
        self._figures: Mapping[str, Any] | None = None

    def show(self, figures: Mapping[str, Any]) -> None:
        self._figures = figures
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + PAINT_S
            self._paint(figures)

    def end(self) -> None:
        """Draw the last state and leave it on the screen."""
        if self._figures is not None:
            self._paint(self._figures)
        self._figures, self._count = None, 0

    def _paint(self, figures: Mapping[str, Any]) -> None:
        # A line that fills the last column would wrap.
        columns, rows = shutil.get_terminal_size()
        lines = screen.live(figures, max(1, columns - 1), max(1, rows - 1))
        up = f"\x1b[{self._count}A\r" if self._count else ""
        sys.stdout.write(up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
        sys.stdout.flush()
        self._count = len(lines)


class Coloured(Live):
    """Redraws the screen in colours (demo/coloured_screen.py)."""

    def __init__(self) -> None:
        from rich.console import Console

        super().__init__()
        self._console = Console(file=sys.stdout, highlight=False)
        self._redrawn: Redrawn | None = None

    def end(self) -> None:
        """Draw the last state and leave it on the screen."""
        super().end()
        if self._redrawn is not None:
            self._redrawn.stop()
            self._redrawn = None

    def conclude(self, result: Mapping[str, Any]) -> None:
        from amqp_broker.demo.coloured_screen import verdict

        self._console.print(verdict(result))

    def compare(self, results: Sequence[Mapping[str, Any]]) -> None:
        from amqp_broker.demo.coloured_screen import comparison

        self._console.print(comparison(results))

    def _paint(self, figures: Mapping[str, Any]) -> None:
        from rich.live import Live as Redrawn

        from amqp_broker.demo.coloured_screen import live

        if self._redrawn is None:
            self._redrawn = Redrawn(
                console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
            )
            self._redrawn.start()
        size = self._console.size
        self._redrawn.update(live(figures, size.width, size.height), refresh=True)
