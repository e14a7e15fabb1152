"""The table of what can grow, and how a row is judged.

A row is a generator: it makes its world with `n` things, yields, and then plays what is counted.

    @row(300)
    def deleting_a_queue_with_bindings(world: World, n: int) -> Play:
        client = world.client()
        ...
        yield
        client.send(commands.Queue.Delete(queue="q"))

After a second yield nothing is counted: a row that shares its world with others cleans up there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from tests.growth.counted import LineCounter
from tests.growth.world import World, small_scale

Play: TypeAlias = Iterator[None]

# Twice as many things may mean 2.6 times as much work more: N log N is below, N² means 4 times as much.
STEEP: Final = 2.6
# Lines by which the longest turn may differ in the portions of requests: the last step may be short or long.
UNEVENNESS: Final = 250


class Row(NamedTuple):
    """A play, and the number of things to begin with."""

    name: str
    play: Callable[[World, int], Play]
    n: int
    world: Callable[[int], World] = lambda n: World()
    # False if a turn may grow with what the row says, for the size of a frame bounds that.
    bounds_turns: bool = True
    # Lines by which the longest turn may differ; by default, half a line for each thing.
    unevenness: int = 0


class Measured(NamedTuple):
    """Lines in all, and in the longest turn."""

    work: int
    longest: int


def row(
    table: list[Row], n: int = 100, *, bounds_turns: bool = True, unevenness: int = 0
) -> Callable[[Callable[[World, int], Play]], Callable[[World, int], Play]]:
    """Add a function to a table."""

    def add(play: Callable[[World, int], Play]) -> Callable[[World, int], Play]:
        table.append(Row(play.__name__, play, n, bounds_turns=bounds_turns, unevenness=unevenness))
        return play

    return add


def played(row: Row, n: int, **options: bool) -> LineCounter:
    """The counter after a row was played with `n` things."""
    world = row.world(n)
    playing = row.play(world, n)
    next(playing)
    world.settle()
    world.begin(**options)
    next(playing, None)
    world.settle()
    world.end()
    next(playing, None)
    world.settle()
    return world.counter


def measured(row: Row, n: int) -> Measured:
    """The work of a row with `n` things."""
    turns = played(row, n).turns
    return Measured(sum(turn.lines for turn in turns), max(turn.lines for turn in turns))


def faults(row: Row) -> list[str]:
    """The faults of a row, with the lines of code that grow most; empty if all is well."""
    with small_scale():
        found = judged(row, *measure(row))
        return [*found, *growing_lines(row)] if found else []


def still_grows(row: Row) -> bool:
    """Return whether a known row grows. It may be near the limit, and must not come and go.

    The longest turn with n things may be longer than that with 4n (9311, 4483 and 8623 lines for definitions of a
    vhost). So the last two measures decide, too.
    """
    unevenness = (row.unevenness or row.n) // 4
    with small_scale():
        once, twice, four_times = measure(row)
    is_longer = row.bounds_turns and four_times.longest - twice.longest > unevenness
    return is_longer or bool(judged(row._replace(unevenness=unevenness), once, twice, four_times))


def measure(row: Row) -> tuple[Measured, Measured, Measured]:
    """The work of a row with n, 2n and 4n things, when what is made only once is there."""
    played(row, row.n, counts_lines=False)
    return measured(row, row.n), measured(row, row.n * 2), measured(row, row.n * 4)


def growing_lines(row: Row) -> list[str]:
    """The lines of code that the longest turn runs more often with 4n things than with 2n."""
    less, more = (played(row, row.n * factor, counts_places=True).places_of_longest for factor in (2, 4))
    grown = (more - less).most_common(5)
    return [f"{file.rpartition('amqp_broker/')[2]}:{line} runs {count} times more" for (file, line), count in grown]


def judged(row: Row, once: Measured, twice: Measured, four_times: Measured) -> list[str]:
    """The faults of a row with n, 2n and 4n things."""
    n, found = row.n, []
    more, much_more = twice.work - once.work, four_times.work - twice.work
    if much_more > STEEP * max(more, 0) + 2 * n:
        found.append(f"work grows faster than N log N: {once.work}, {twice.work}, {four_times.work} lines")
    if row.bounds_turns and four_times.longest - max(once.longest, twice.longest) > (row.unevenness or n):
        found.append(f"the longest turn grows: {once.longest}, {twice.longest}, {four_times.longest} lines")
    return found
