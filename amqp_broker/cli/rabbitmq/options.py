"""The parser of RabbitMQ's tools: an option is declared once, for the command line and for the help.

Health checks start a tool every second, so it is not click, which the broker's own commands use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple


class Option(NamedTuple):
    """An option. One without `about` is accepted but not shown in the help."""

    name: str
    # Placeholder of the value in the help; "" for a switch.
    value: str = ""
    about: str = ""
    letters: str = ""
    # Further names, of other versions of the tool.
    also: tuple[str, ...] = ()
    default: str = ""
    is_integer: bool = False
    # The value may be missing before another option and at the end.
    is_value_optional: bool = False

    @property
    def key(self) -> str:
        """The name as Python writes it."""
        return self.name.replace("-", "_")


class Kind(Enum):
    """Kinds of words on a command line."""

    ARGUMENT = "argument"
    OPTION = "option"
    UNKNOWN = "unknown option"
    INCOMPLETE = "option without its value"


class Word(NamedTuple):
    """An argument, or an option with its value; `text` is the word as typed."""

    kind: Kind
    text: str
    option: Option | None = None
    value: str = ""


def flags_of(options: Iterable[Option]) -> dict[str, Option]:
    """Return options by everything that they are called on a command line: `--name` and `-n`."""
    found = {}
    for option in options:
        for name in (option.name, *option.also):
            found[f"--{name}"] = found[f"--{name.replace('-', '_')}"] = option
        found.update({f"-{letter}": option for letter in option.letters})
    return found


def read_words(words: Sequence[str], find: Callable[[str], Option | None]) -> Iterator[Word]:
    """Yield arguments and options in their order; `find` returns the option that is called `--name` or `-n`.

    A switch has the value "true" unless the word gives another (`--quiet=false`). All words after `--` are arguments.
    """
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if word == "--":
            yield from (Word(Kind.ARGUMENT, argument) for argument in reversed(rest))
            return
        if not word.startswith("-") or word == "-" or word[1].isdigit():
            yield Word(Kind.ARGUMENT, word)
            continue
        flag, equals, value = word.partition("=")
        option = find(flag)
        if option is None:
            yield Word(Kind.UNKNOWN, word)
        elif equals:
            yield Word(Kind.OPTION, word, option, value)
        elif not option.value or (option.is_value_optional and (not rest or rest[-1].startswith("--"))):
            yield Word(Kind.OPTION, word, option, "true")
        elif rest:
            yield Word(Kind.OPTION, word, option, rest.pop())
        else:
            yield Word(Kind.INCOMPLETE, word, option)


def help_lines(options: Iterable[Option], layout: Callable[[Option], str], width: int) -> Iterator[str]:
    """Yield a line of help for each option: its names as `layout` writes them, and what it is for."""
    for option in options:
        if option.about:
            default = f" [{option.default}]" if option.default else ""
            yield f"{layout(option):{width}}{option.about}{default}"
