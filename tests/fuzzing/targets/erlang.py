"""A text of Erlang terms: an advanced.config, arguments of the virtual machine, a file of plugins.

Each reader refuses it with its own error, or returns entries; a term is the same when it is printed and read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from amqp_broker.cli.rabbitmq import columns
from amqp_broker.cli.rabbitmq.formatters import erlang
from amqp_broker.settings.settings import Settings
from amqp_broker.settings.sources import erlang_settings, erlang_terms
from amqp_broker.settings.sources.conf_keys import settings_of
from amqp_broker.settings.sources.erlang_terms import Atom, TermError
from tests.fuzzing import texts
from tests.fuzzing.target import Target, expect


def check(data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    for entries, wrong in (
        erlang_settings.from_config(text, "advanced.config"),
        erlang_settings.from_arguments(text, "ARGUMENTS"),
    ):
        expect(all(wrong), "an error without a sentence")
        given, notices = settings_of(entries)
        expect(all(notice.text for notice in notices), "a notice without a sentence")
        Settings(**{name: value for name, (value, _) in given.items()}).check()
    try:
        erlang_settings.plugins(text)
    except TermError as error:
        expect(str(error), "an error without a sentence")
    try:
        term = erlang_terms.read(text)
    except TermError:
        return
    if has_unprintable(term):
        return
    printed = erlang(printable(term))
    again = erlang_terms.read(printed)
    expect(exact(again) == exact(term), f"{term!r} is printed as {printed} and read as {again!r}")


def has_unprintable(term: Any) -> bool:
    """Return whether a term has a part that no setting has: a map, an improper list or a function."""
    if isinstance(term, (list, tuple)):
        return any(map(has_unprintable, term))
    return not isinstance(term, (str, int, float))


def printable(term: Any) -> Any:
    """Return a term with the atoms of the printer."""
    if isinstance(term, Atom):
        # An atom of the printer that begins like this is a term that was printed before.
        return columns.Atom("a" + term if term[:1] in ("<", "{") else term)
    if isinstance(term, (list, tuple)):
        return type(term)(map(printable, term))
    return term


def exact(term: Any) -> str:
    """Return a text that differs for terms of other types."""
    if isinstance(term, Atom):
        return f"atom {'a' + term if term[:1] in ('<', '{') else str(term)!r}"
    if isinstance(term, (list, tuple)):
        return f"{type(term).__name__}({', '.join(map(exact, term))})"
    return repr(term)


TEXTS = (
    """[{rabbit, [{tcp_listeners, [5672, {"127.0.0.1", 5673}]}, {heartbeat, 30}, {loopback_users, []},
 {default_user, <<"guest">>}, {default_permissions, [<<".*">>, <<".*">>, <<".*">>]}, {vm_memory_high_watermark, 0.6},
 {disk_free_limit, {mem_relative, 1.0}}, {log, [{console, [{enabled, true}, {level, debug}]}]},
 {default_consumer_prefetch, {false, 250}}, {auth_mechanisms, ['PLAIN', 'AMQPLAIN']}]},
 {rabbitmq_management, [{listener, [{port, 15672}]}]}]. % comment""",
    "[rabbitmq_management,rabbitmq_shovel].",
    "-rabbit heartbeat 30 -rabbit tcp_listeners [5672] +S 1:1 -rabbit log_levels [{connection,error}] -extra x",
    r"""{"a\n\"b", 'Atom \'q\'', -1.5e10, <<"bytes">>, [a@b, []], {}, ''}""",
    r"""<<"\x{e9}\101\s"/utf8>>""",
    r"""[#{a => 1_000}, 16#FF, $a, $\n, "a" "b", [1|2], fun lists:map/2, <<1, 2:16/little, 1.5:32/float>>, -(+3)]""",
)


def seeds() -> Iterator[bytes]:
    for text in TEXTS:
        yield text.encode()


WORDS = (
    *(
        "{rabbit,[",
        "{rabbitmq_management,[",
        "]}",
        "]}].",
        "-rabbit ",
        "<<",
        ">>",
        '<<"',
        '">>',
        "/utf8",
        "#{",
        "=>",
        "16#",
        "$",
        "fun ",
        "'",
        '"',
        "\\",
    ),
    *("heartbeat", "tcp_listeners", "loopback_users", "default_permissions", "log_levels", "disk_free_limit", "log"),
    *("vm_memory_high_watermark", "default_consumer_prefetch", "auth_mechanisms", "absolute", "1.0e", "%", "+S "),
)


def mutate(chance: Random, data: bytes) -> bytes:
    return texts.mutate(chance, data, WORDS)


TARGET = Target(check, seeds, mutate, words=WORDS, octets_max=800)
