from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.settings.sources.erlang_terms import (
    DEPTH_MAX,
    Atom,
    Function,
    ImproperList,
    Map,
    TermError,
    read,
)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("[rabbitmq_management,rabbitmq_prometheus].", ["rabbitmq_management", "rabbitmq_prometheus"]),
        ("[].", []),
        ("[]", []),
        ("% a comment\n[ a , % another\n b ]\n.\n", ["a", "b"]),
        ("{heartbeat, 30}", ("heartbeat", 30)),
        ("{a, -1.5}", ("a", -1.5)),
        ("1.0e-3", 0.001),
        ('"a \\"quoted\\" string"', 'a "quoted" string'),
        ('<<"guest">>', "guest"),
        ("<<>>", ""),
        ("'PLAIN'", "PLAIN"),
        ("'it\\'s'", "it's"),
        (r'"a\nb\tc\r\e\b\f\v\d\s."', "a\nb\tc\r\x1b\b\f\v\x7f ."),
        (r'"\101\7\x41\x{e9}\x{1f600}\^A\\"', "A\x07A\u00e9\U0001f600\x01\\"),
        (r"'a\'b'", "a'b"),
        ('<<"\u00e9"/utf8>>', "\u00e9"),
        ('<<"a"/utf8, "b">>', "ab"),
        ('"]"', "]"),
        ('["."]', ["."]),
        ('"a" "b"\n"c"', "abc"),
        ("rabbit@host", "rabbit@host"),
        ("16#FF", 255),
        ("36#z_Z", 1295),
        ("1_000", 1000),
        ("1_0.5_0e1_0", 10.50e10),
        ("$a", 97),
        (r"$\n", 10),
        (r"$\x41", 65),
        ("$ ", 32),
        ("- 1", -1),
        ("-(+16#a)", -10),
        ("(a)", "a"),
        ("<<97, $b, 16#63>>", "abc"),
        ("<<1:16, 2:16/little-unsigned>>", "\0\1\2\0"),
        ("<<255>>", "\u00ff"),
        ("<<16#e9/utf8>>", "\u00e9"),
        ("<<1.5:32/float>>", "?\u00c0\0\0"),
        ("[a | [b]]", ["a", "b"]),
        ("[a, b | c]", ImproperList([Atom("a"), Atom("b")], Atom("c"))),
        ("#{}", Map([])),
        ("#{a => 1, [b] => #{}}", Map([(Atom("a"), 1), ([Atom("b")], Map([]))])),
        ("fun lists:reverse/1", Function(Atom("lists"), Atom("reverse"), 1)),
        ("[{rabbit, [{a, [{b, true}]}]}].", [("rabbit", [("a", [("b", "true")])])]),
    ],
)
def test_a_term_is_read(text: str, term: Any) -> None:
    assert read(text) == term


def test_atoms_and_strings_differ() -> None:
    assert [type(term) for term in read('[a, \'b\', "c", <<"d">>]')] == [Atom, Atom, str, str]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        (".", 1),
        ("[a", 1),
        ("[a,\nb", 2),
        ("[a b]", 1),
        ("[a}", 1),
        ("{a]", 1),
        ("[,]", 1),
        ("a. b.", 1),
        ("a..", 1),
        ("[a]\n]", 2),
        ("Variable", 1),
        ("#{a = 1}", 1),
        ("#{a => 1,}", 1),
        ("#{a}", 1),
        ("a#{}", 1),
        ("<<a>>", 1),
        ("<<1:a>>", 1),
        ("<<1/word>>", 1),
        ("[|a]", 1),
        ("[a|b,c]", 1),
        ("37#1", 1),
        ("2#2", 1),
        ("1__0", 1),
        ("$", 1),
        ("-a", 1),
        ('-"1"', 1),
        ("(a", 1),
        ("and", 1),
        ("fun f/1", 1),
        ("fun () -> ok end", 1),
        ('"a"/utf8', 1),
        ("[a/utf8]", 1),
        (r'"\x{110000}"', 1),
        (r'"\x{d800}"', 1),
        ("1.0e999", 1),
        ("9" * 5000, 1),
        ("{a,\n\u0663}", 2),
        ('"open', 1),
        ("\n\n'open", 3),
        ("[" * (DEPTH_MAX + 2), 1),
        ("[" * 100_000, 1),
    ],
)
def test_an_invalid_term_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(TermError) as caught:
        read(text)
    assert str(caught.value) == f"line {line}: this is not an Erlang term"
