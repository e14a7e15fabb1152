"""`python -m tests.soak`: run applications with a broker for a long time; exit with 1 if it leaks."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import click

from tests.adversity.watching import MIB
from tests.soak.soak import soak


@click.command()
@click.option("--minutes", default=60.0, show_default=True, help="Duration of the work.")
@click.option("--seed", default=None, type=int, help="Seed of the work; the time by default.")
def main(minutes: float, seed: int | None) -> None:
    """Run applications of all kinds with one broker, and check that it keeps nothing of them."""
    seed = int(time.time()) if seed is None else seed
    click.echo(f"{minutes:g} minutes with --seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        result = soak(Path(folder), minutes * 60, seed)
    click.echo(f"{result.rounds} rounds, {result.messages} messages")
    for checkpoint in result.checkpoints:
        click.echo(f"{checkpoint.memory_bytes / MIB:.1f} MiB, {checkpoint.open_files} open files")
    for error in result.errors:
        click.echo(error, err=True)
    sys.exit(1 if result.errors else 0)


if __name__ == "__main__":
    main()
