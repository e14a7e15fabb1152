from __future__ import annotations

import os

import click
import pytest

from amqp_broker.cli.own import serve_options
from amqp_broker.cli.own.setting_options import settings_as_options
from amqp_broker.settings.settings import SETTINGS
from amqp_broker.settings.sources.precedence import Loaded, load
from tests.cli.program import run


def read_by_click(words: list[str]) -> Loaded:
    @click.command()
    @settings_as_options
    def command(**given: object) -> Loaded:
        return load(given, {})

    loaded: Loaded = command.main(words, standalone_mode=False)
    return loaded


EVERY = [
    words
    for setting in SETTINGS
    for option in setting.options
    if option.startswith("--")
    for words in ([[name] for name in option.split("/")] if setting.type == "bool" else [[option, "0"]])
]
# Settings whose values are not free.
VALUES = {
    "--compat": "4.3",
    "--config": os.devnull,
    "--store-sync": "os",
    "--tls": "auto",
    "--log-level": "debug",
    "--log-format": "json",
}


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_each_option_is_read_as_click_reads_it(words: list[str]) -> None:
    words = [words[0], *(VALUES.get(words[0], value) for value in words[1:])]
    given = serve_options.read(words)
    assert given is not None
    assert load(given, {}) == read_by_click(words)
    assert len(load(given, {}).places) == 1


def test_options_have_values_in_both_forms_and_the_last_one_counts() -> None:
    words = ["--port", "1", "--host=::1", "--port=2", "--no-management", "--management", "--data-dir", "a b"]
    given = serve_options.read(words)
    assert given == {"port": "2", "host": "::1", "management": True, "data_dir": "a b"}
    assert load(given, {}) == read_by_click(words)
    assert serve_options.read([]) == {}


@pytest.mark.parametrize(
    "words",
    [
        *(["--help"], ["-h"], ["-t"], ["--bogus"], ["extra"], ["--"], ["--port"], ["--host"], ["--ephemeral=1"]),
        *(["--port", "amqp"], ["--port="], ["--port", "-1"], ["--host", "--port"], ["-c", "x.conf"]),
    ],
    ids=" ".join,
)
def test_click_sees_all_other_words(words: list[str]) -> None:
    assert serve_options.read(words) is None
    assert serve_options.read(["--ephemeral", *words]) is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--ephemeral --data-dir x", "--data-dir has no effect with --ephemeral"),
        ("--store-sync os --ephemeral", "--store-sync has no effect with --ephemeral"),
        ("--ephemeral --store-bytes-max=1GB", "--store-bytes-max has no effect with --ephemeral"),
    ],
)
def test_an_option_that_has_no_effect_beside_another_is_refused(words: str, sentence: str) -> None:
    assert serve_options.read(words.split()) is None
    done = run("serve", *words.split())
    assert done.stderr == f"amqp-broker: {sentence}: leave one of them out.\n"
    assert done.returncode == os.EX_USAGE


def test_an_option_that_loses_nothing_may_stand_beside_another() -> None:
    assert serve_options.contradiction({"data_dir": "x", "ephemeral": None}) == ""
    assert serve_options.read(["--no-management", "--management-port", "1"]) is not None


def test_a_word_that_is_not_text_is_refused() -> None:
    done = run("serve", "--host", os.fsdecode(b"\xff"))
    assert done.stderr == "amqp-broker: '\\udcff' is not text in UTF-8.\n"
    assert done.returncode == os.EX_USAGE
