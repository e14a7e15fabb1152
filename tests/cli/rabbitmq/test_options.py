from __future__ import annotations

import pytest

from amqp_broker.cli.rabbitmq.options import Kind, Option, Word, flags_of, help_lines, read_words

QUIET = Option("quiet", about="no messages", letters="q")
VHOST = Option("vhost", "<vhost>", "the vhost", "p", default="/")
FILE = Option("ca-file", "FILE", also=("tls-ca-file",))
LENIENT = Option("name", "NAME", is_value_optional=True)
OPTIONS = flags_of((QUIET, VHOST, FILE, LENIENT))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["-q"], [(QUIET, "true")]),
        (["--quiet=false"], [(QUIET, "false")]),
        (["--vhost", "v"], [(VHOST, "v")]),
        (["--vhost=v"], [(VHOST, "v")]),
        (["-p", "--v"], [(VHOST, "--v")]),
        (["--tls_ca_file", "f"], [(FILE, "f")]),
        (["--name", "n"], [(LENIENT, "n")]),
        (["--name", "--quiet"], [(LENIENT, "true"), (QUIET, "true")]),
        (["--name"], [(LENIENT, "true")]),
    ],
)
def test_an_option_is_read_in_all_its_forms(words: list[str], found: list[tuple[Option, str]]) -> None:
    assert [(word.option, word.value) for word in read_words(words, OPTIONS.get)] == found


@pytest.mark.parametrize(
    ("words", "arguments"), [(["a", "-", "-1", "b=c"], ["a", "-", "-1", "b=c"]), (["--", "-q", "--"], ["-q", "--"])]
)
def test_words_that_are_not_options_are_arguments(words: list[str], arguments: list[str]) -> None:
    assert [word.text for word in read_words(words, OPTIONS.get) if word.kind is Kind.ARGUMENT] == arguments


def test_an_unknown_option_and_a_missing_value_are_reported() -> None:
    assert list(read_words(["--bogus=1", "--vhost"], OPTIONS.get)) == [
        Word(Kind.UNKNOWN, "--bogus=1"),
        Word(Kind.INCOMPLETE, "--vhost", VHOST),
    ]


def test_the_help_leaves_out_options_without_a_description() -> None:
    assert list(help_lines((QUIET, VHOST, FILE), lambda option: f"--{option.name}", 10)) == [
        "--quiet   no messages",
        "--vhost   the vhost [/]",
    ]
