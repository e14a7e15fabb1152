"""The help of rabbitmqadmin, and its completion script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from amqp_broker.cli.rabbitmq.admin_objects import NOUNS, OBJECTS, Object
from amqp_broker.cli.rabbitmq.admin_options import OPTIONS
from amqp_broker.cli.rabbitmq.options import Option, help_lines

if TYPE_CHECKING:
    from collections.abc import Callable


class Verb(NamedTuple):
    """A command: the function, the arguments and a description for the help."""

    run: Callable[[Any], None]
    usage: str = ""
    about: str = ""


def help_text(verbs: Mapping[str, Verb]) -> str:
    """Return the help: the commands and the options."""

    def layout(option: Option) -> str:
        letter = f"-{option.letters}," if option.letters else "   "
        return f"  {letter} --{option.name} {option.value}"

    lines = ["Usage: rabbitmqadmin [options] command", ""]
    for name, verb in verbs.items():
        lines.append(f"  {f'{name} {verb.usage}':31}  {verb.about}".rstrip())
    lines += [
        "",
        "Arguments can also be written --name VALUE, and commands in the order of v2: queues declare --name q.",
        "The arguments of each kind: rabbitmqadmin help subcommands.",
    ]
    return "\n".join([*lines, "", *help_lines(OPTIONS, layout, 44), ""])


def subcommands() -> str:
    """Return the help on the objects: what can be listed, declared and deleted, and by which arguments."""
    plurals = {kind: noun for noun, kind in NOUNS.items()}
    lists = [f"list {plurals[kind]} [COLUMN...]" for kind, thing in OBJECTS.items() if thing.listed]
    declares = [f"declare {kind} {' '.join(_declared(thing))}" for kind, thing in OBJECTS.items() if thing.path]
    deletes = [f"delete {kind} {' '.join(_named(thing.named_by))}" for kind, thing in OBJECTS.items() if thing.named_by]
    return "\n".join(["Usage: rabbitmqadmin [options] command", "", *lists, "", *declares, "", *deletes, ""])


def _declared(thing: Object) -> Iterator[str]:
    yield from _named(thing.needed)
    if thing.optional:
        yield f"[{' '.join(_named(thing.optional))}]"


def _named(fields: Iterable[str]) -> Iterator[str]:
    return (" | ".join(f"{name}=..." for name in field.split("|")) for field in fields)


def completion(verbs: Iterable[str]) -> str:
    """Return a completion script for bash."""
    nouns, word = " ".join(sorted(NOUNS)), '"${COMP_WORDS[COMP_CWORD]}"'
    return (
        "_rabbitmqadmin() {\n"
        '    case "${COMP_WORDS[COMP_CWORD-1]}" in\n'
        f'        list|declare|delete|close|purge) COMPREPLY=($(compgen -W "{nouns}" -- {word}));;\n'
        "        show) COMPREPLY=(overview);;\n"
        f"        export|import) COMPREPLY=($(compgen -f -- {word}));;\n"
        f'        *) COMPREPLY=($(compgen -W "{" ".join(verbs)}" -- {word}));;\n'
        "    esac\n"
        "}\n"
        "complete -F _rabbitmqadmin rabbitmqadmin"
    )
