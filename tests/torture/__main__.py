"""`python -m tests.torture`: kill a broker for a number of rounds; exit with 1 if it lost a promise."""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from pathlib import Path

import click

from amqp_broker.settings.settings import FULL, OS
from tests.torture.interrupted_deletions import KINDS, interrupt_deletion
from tests.torture.interrupted_tools import TOOLS, interrupt
from tests.torture.torture import torture


@click.command()
@click.option("--rounds", default=50, show_default=True, help="Number of kills while clients work.")
@click.option("--seed", default=None, type=int, help="Seed of the moments of the kills; the time by default.")
@click.option("--tool-rounds", default=0, show_default=True, help="Number of kills of each tool of the store.")
@click.option("--deletion-rounds", default=0, show_default=True, help="Number of kills of each kind of deletion.")
@click.option("--store-sync", default=FULL, type=click.Choice([FULL, OS]), help="When the broker confirms.")
def main(rounds: int, seed: int | None, tool_rounds: int, deletion_rounds: int, store_sync: str) -> None:
    """Kill a broker at random moments, and check that nothing it promised is lost."""
    # Clients log each broken connection at length.
    logging.disable(logging.CRITICAL)
    seed = int(time.time()) if seed is None else seed
    click.echo(f"{rounds} rounds with --seed {seed} --store-sync {store_sync}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = torture(Path(folder, "broker"), rounds, seed, store_sync)
        for tool in TOOLS if tool_rounds else ():
            interrupted = interrupt(tool, Path(folder, tool), tool_rounds, seed)
            click.echo(f"{tool}: killed {interrupted.kills} times before its end")
            result.errors += interrupted.errors
        for kind in KINDS if deletion_rounds else ():
            interrupted = interrupt_deletion(kind, Path(folder, kind), deletion_rounds, seed)
            click.echo(f"deletion of the {kind}: killed {interrupted.kills} times when a part of its bindings was left")
            result.errors += interrupted.errors
    click.echo(f"{result.confirmed} messages confirmed, {time.monotonic() - began:.0f} s")
    click.echo(f"{result.kills_while_starting} further kills while the broker started")
    for title, counts in (("delivered", result.delivered), ("left at the end", result.left)):
        click.echo(f"{title}: {', '.join(f'{count} of {queue}' for queue, count in sorted(counts.items()))}")
    for error in result.errors[:50]:
        click.echo(error, err=True)
    if result.errors:
        click.echo(f"{len(result.errors)} errors", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
