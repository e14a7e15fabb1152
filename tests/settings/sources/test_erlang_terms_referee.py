"""Erlang terms, as `file:consult` of a live Erlang reads them."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from amqp_broker.settings.sources.erlang_terms import Atom, Function, ImproperList, Map, TermError, read

pytestmark = [
    pytest.mark.verify,
    pytest.mark.skipif(shutil.which("erl") is None, reason="Erlang is not installed"),
]

SEED: Final = 1
DRAWN: Final = 600
# Prints a line of JSON for each file: its only term, or null.
PROGRAM: Final = r"""
Write = fun
    Write(T) when is_integer(T) -> integer_to_list(T);
    Write(T) when is_float(T) -> io_lib:format("{\"float\":\"~w\"}", [T]);
    Write(T) when is_atom(T) -> ["{\"atom\":", Write({octets, unicode:characters_to_binary(atom_to_list(T))}), "}"];
    Write({octets, T}) -> ["[", lists:join(",", [integer_to_list(O) || <<O>> <= T]), "]"];
    Write(T) when is_binary(T) -> ["{\"binary\":", Write({octets, T}), "}"];
    Write(T) when is_bitstring(T) -> "{\"bits\":[]}";
    Write(T) when is_tuple(T) -> ["{\"tuple\":", Write(tuple_to_list(T)), "}"];
    Write(T) when is_map(T) -> ["{\"map\":", Write([{octet_pair, K, V} || {K, V} <- maps:to_list(T)]), "}"];
    Write(T) when is_function(T) -> "{\"function\":[]}";
    Write([]) -> "[]";
    Write(T) when is_list(T) ->
        Proper = fun P([_ | R]) -> P(R); P(R) -> R =:= [] end,
        case Proper(T) of
            true -> ["[", lists:join(",", [Write(E) || E <- T]), "]"];
            false ->
                Split = fun S([H | R], A) -> S(R, [H | A]); S(R, A) -> {lists:reverse(A), R} end,
                {Items, Tail} = Split(T, []),
                ["{\"improper\":[", Write(Items), ",", Write(Tail), "]}"]
        end
end,
lists:foreach(fun(File) ->
    Line = case file:consult(File) of {ok, [Term]} -> Write(Term); _ -> "null" end,
    io:format("~s~n", [Line])
end, init:get_plain_arguments()), halt().
"""
TEXTS: Final = (
    "[{rabbit, [{consumer_timeout, undefined}, {tcp_listeners, [5672]}]}, {rabbitmq_shovel, [{shovels, []}]}]",
    "[{rabbit, [{log, [{file, false}]}]}]",
    '[{rabbit, [{default_pass, <<"gu\\"est">>}, {ssl_options, [{versions, [\'tlsv1.2\']}]}]}] % the end',
    '"a" "b"\n"c"',
    r'"\x41\x{e9}\t\101\^A\q"',
    '"line one\\\n two"',
    "[1|2]",
    "[1|[2|[3]]]",
    "[1|[2|3]]",
    "{1, -1, + 1, -16#ff, 2#101, 36#z, 1_000_000, 1.5e-3, 1.0E5, 0.0, -0.0}",
    r"[$a, $\n, $\x41, $\^a, $ , $\s, $\\, $', $\"]",
    "<<>>",
    "<<1, 256, -1, $a>>",
    '<<"ab", 1:16, 2:16/little, "c"/utf8, 1.5:32/float, 1.5/float, 233/utf8>>',
    '<<"\u00e9">>',
    '<<"\u00e9"/utf8, "\u20ac"/utf16, "x"/utf16-little>>',
    '<<"ab":16>>',
    "<<1:4>>",
    "<<1:0>>",
    "<<a>>",
    '<<"\u20ac">>',
    "#{}",
    "#{1 => 2}",
    "fun lists:map/2",
    "fun lists:map",
    "fun () -> ok end",
    "(a)",
    "{(1), ([])}",
    "a",
    "''",
    "'and'",
    "and",
    "maybe",
    "A",
    "_",
    "a@b_C1",
    "\u00e9t\u00e9",
    "1.",
    "1.e5",
    "1e5",
    "1__0",
    "_1",
    "1_",
    "16#g",
    "1#0",
    "0#0",
    "37#0",
    "\u0663",
    "- a",
    '-"a"',
    "1 + 2",
    '"a" ++ "b"',
    "[a,]",
    "[,a]",
    "{}",
    "[a b]",
    "a b",
    "",
    "%",
    "a. b",
    "\ufeffa",
)
PARTS: Final = (
    *("a", "rabbit", "'Quoted atom'", "true", "17", "-3", "1_0", "16#fF", "1.25", "$x", "$\\n", "fun m:f/2"),
    *('"text"', '"a" "b"', '""', '<<"bin">>', '<<"b"/utf8>>', "<<1,2>>", "<<>>", "[]", "{}", "#{}"),
)


def drawn(choices: random.Random, depth: int = 0) -> str:
    """Draw the text of a term."""
    if depth > 3 or choices.random() < 0.4:
        return choices.choice(PARTS)
    items = [drawn(choices, depth + 1) for _ in range(choices.randrange(4))]
    kind = choices.randrange(4)
    space = choices.choice(("", " ", "\n", " % said, \n"))
    if kind == 0:
        return "{" + f",{space}".join(items) + "}"
    if kind == 1 and items:
        return "[" + f"{space},".join(items) + f"|{drawn(choices, depth + 1)}]"
    if kind == 2:
        # One pair: of equal keys, Erlang has the last.
        return "#{" + "".join(f"{item} => {space}{drawn(choices, depth + 1)}" for item in items[:1]) + "}"
    return "[" + f",{space}".join(items) + "]"


def texts() -> Iterator[str]:
    """Yield the texts above, drawn ones, and drawn ones with a mistake."""
    yield from TEXTS
    choices = random.Random(SEED)
    for number in range(DRAWN):
        text = drawn(choices)
        if number % 2:
            at = choices.randrange(len(text) + 1)
            inserted = choices.choice(("", *"[]{}(),.|\"'<>#$=>/:-+_% 1aZ"))
            text = text[:at] + inserted + text[at + choices.randrange(2) :]
        yield text


def is_same(term: Any, other: Any) -> bool:
    """Return whether a term is the one that Erlang has; strings and binaries are both `str` here."""
    if isinstance(term, Atom):
        return bool(other == {"atom": list(term.encode())})
    if isinstance(term, str):
        if isinstance(other, list):
            return other == [ord(character) for character in term]
        octets = bytes(other.get("binary", ()))
        return "bits" in other or term.encode() == octets or term.encode("latin-1", "replace") == octets
    if isinstance(term, float):
        return isinstance(other, dict) and float(other["float"]) == term
    if isinstance(term, int):
        return bool(other == term)
    if isinstance(term, list):
        return isinstance(other, list) and len(term) == len(other) and all(map(is_same, term, other))
    if isinstance(term, Map):
        pairs = [tuple(pair["tuple"][1:]) for pair in other.get("map", ())]
        return len(pairs) == len(term.pairs) and all(
            is_same(key, known) and is_same(value, found)
            for (key, value), (known, found) in zip(term.pairs, pairs, strict=True)
        )
    if isinstance(term, ImproperList):
        items, tail = other.get("improper", ((), ())) if isinstance(other, dict) else ((), ())
        return is_same(term.items, items) and is_same(term.tail, tail)
    if isinstance(term, Function):
        return "function" in other
    return isinstance(other, dict) and is_same(list(term), other.get("tuple"))


def test_a_term_is_what_erlang_reads(tmp_path: Path) -> None:
    given = list(texts())
    for number, text in enumerate(given):
        # The coding of a file is UTF-8 unless it says otherwise.
        (tmp_path / f"{number}").write_text(f"{text}\n.\n", "utf-8")
    command = [
        "erl",
        "-noshell",
        "-noinput",
        "-eval",
        PROGRAM,
        "-extra",
        *(str(number) for number in range(len(given))),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60, check=True)
    read_by_erlang = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(other is not None for other in read_by_erlang) > DRAWN // 2
    wrong = []
    for text, other in zip(given, read_by_erlang, strict=True):
        try:
            term = read(f"{text}\n.\n")
        except TermError:
            if other is not None:
                wrong.append(f"{text!r} is refused here, and {other} in Erlang")
            continue
        if other is None or not is_same(term, other):
            wrong.append(f"{text!r} is {term!r} here, and {other} in Erlang")
    assert wrong == []
