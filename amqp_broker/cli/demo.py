"""`amqp-broker demo confirms`: publishers in a storm of faults, live in the terminal."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from amqp_broker.cli.failing import CommandError
from amqp_broker.demo import screen
from amqp_broker.demo.figures import result
from amqp_broker.demo.storm import SEED_MAX, storm
from amqp_broker.demo.strategies import STRATEGIES, Strategy
from amqp_broker.exit_codes import EX_UNAVAILABLE

if TYPE_CHECKING:
    from amqp_broker.testing import EmbeddedBroker

# Of a promise that is broken.
EX_BROKEN: Final = 1
MESSAGES_MAX: Final = 100_000
WINDOW_MAX: Final = 1000
RATE_MAX: Final = 1_000_000
ALL: Final = "all"
PAINT_S: Final = 0.1


@click.group()
def demo() -> None:
    """Show what the broker is for."""


@demo.command()
@click.option(
    "--strategy",
    type=click.Choice([*STRATEGIES, ALL]),
    default="async",
    show_default=True,
    help="How to publish; all compares them.",
)
@click.option("--messages", type=click.IntRange(1, MESSAGES_MAX), default=1000, show_default=True, help="How many.")
@click.option(
    "--seed", type=click.IntRange(0, SEED_MAX), default=1, show_default=True, help="Decides what the storm is."
)
@click.option(
    "--window",
    type=click.IntRange(1, WINDOW_MAX),
    default=100,
    show_default=True,
    help="How many messages may be unconfirmed, with window and async.",
)
@click.option(
    "--rate",
    type=click.IntRange(0, RATE_MAX),
    default=250,
    show_default=True,
    help="Publishes a second at most; 0: as many as there can be.",
)
@click.option("--plain", is_flag=True, help="Lines instead of a live screen, as where there is no terminal.")
@click.option(
    "--management-port",
    type=click.IntRange(0, 65535),
    help="Show it on the web page of its broker, too (0: a free port).",
)
def confirms(
    strategy: str, messages: int, seed: int, window: int, rate: int, plain: bool, management_port: int | None
) -> None:
    """Publish in a storm: the broker nacks, loses and delays confirms, returns, blocks, cuts and is killed.

    At the end what the publisher knows is compared with what is in the queue. The exit code is 0 if that is as the
    strategy promises, and 1 if not. The broker is one of its own, with a folder that is removed afterwards.
    """
    if importlib.util.find_spec("pika") is None:
        raise CommandError(
            "the demo publishes with pika, which is not installed: pip install 'amqp-minibroker[demo]'", EX_UNAVAILABLE
        )
    # What happens to its connections is told by us.
    logging.getLogger("pika").addHandler(logging.NullHandler())
    # Whoever ends it leaves nothing behind.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    show = Plain() if plain or not has_screen() else Live()
    with tempfile.TemporaryDirectory(prefix="amqp-broker-demo-") as folder, broker(folder, management_port) as running:
        shown = Shown(running, show, management_port is not None)
        chosen = list(STRATEGIES.values()) if strategy == ALL else [STRATEGIES[strategy]]
        for one in chosen:
            shown.run(one, messages, seed, window, rate)
        if len(chosen) > 1:
            click.echo("\n".join(["", *screen.table(shown.results)]))
        if management_port is not None and isinstance(show, Live):
            click.prompt("Enter ends it", default="", show_default=False, prompt_suffix=" ")
    if not all(one["is_held"] for one in shown.results):
        sys.exit(EX_BROKEN)


@contextmanager
def broker(folder: str, management_port: int | None) -> Iterator[EmbeddedBroker]:
    """A broker that keeps what it confirms in a folder."""
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
    """Whether lines of the output can be written again."""
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Shown:
    """The demo as it is shown, in the terminal and on the page of its broker; `results` are of what is over."""

    def __init__(self, running: EmbeddedBroker, show: Plain | Live, has_page: bool) -> None:
        self.results: list[dict[str, Any]] = []
        self._broker, self._show, self._has_page = running, show, has_page
        self._told: dict[str, Any] = {}

    def run(self, strategy: Strategy, messages: int, seed: int, window: int, rate: int) -> None:
        """Run a strategy to its end."""
        from amqp_broker.demo.run import Run

        run = Run(self._broker, strategy, storm(messages, seed), messages, window, rate, self._tell, self._publish)
        try:
            self._tell(run.figures())
            self._publish()
            proof = run.run()
            told = run.figures()
            self.results.append(result(told, proof.as_dict()))
            self._tell(told)
        except KeyboardInterrupt:
            self._show.end()
            click.echo(f"Stopped with {run.figures()['confirmed']} of {messages} confirmed.")
            raise
        self._show.end()
        click.echo("\n".join(screen.verdict(self.results[-1])))

    def _tell(self, told: dict[str, Any]) -> None:
        self._told = {**told, "results": list(self.results)}
        self._show.tell(self._told)

    def _publish(self) -> None:
        """Have the broker that runs now tell the page."""

        def tell(server: Any) -> None:
            server.node.demo = lambda: self._told

        if self._has_page:
            self._broker.ask(tell)


class Plain:
    """Prints a line for what begins."""

    def __init__(self) -> None:
        self._before: Mapping[str, Any] | None = None

    def tell(self, told: Mapping[str, Any]) -> None:
        for line in screen.new_lines(told, self._before):
            click.echo(line)
        self._before = told

    def end(self) -> None:
        """Nothing is left to be tidied up."""


class Live:
    """Paints all of it again and again, over what it painted before."""

    def __init__(self) -> None:
        self._count = 0
        self._next_s = 0.0
        self._told: Mapping[str, Any] | None = None

    def tell(self, told: Mapping[str, Any]) -> None:
        self._told = told
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + PAINT_S
            self._paint(told)

    def end(self) -> None:
        """Paint how it ended, and leave that where it is."""
        if self._told is not None:
            self._paint(self._told)
        self._count = 0

    def _paint(self, told: Mapping[str, Any]) -> None:
        # A line that fills its last column would be two.
        columns, rows = shutil.get_terminal_size()
        lines = screen.live(told, max(1, columns - 1), max(1, rows - 1))
        up = f"\x1b[{self._count}A\r" if self._count else ""
        sys.stdout.write(up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
        sys.stdout.flush()
        self._count = len(lines)
