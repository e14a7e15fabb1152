from __future__ import annotations

import pytest

from amqp_broker.settings.sources.rabbitmq_conf import Entry, latest, parse, parts, substituted


def value_of(line: str) -> str | None:
    """The value of the only entry that a line has."""
    entries, wrong = parse(line, "f")
    assert len(entries) + len(wrong) == 1
    return entries[0].value if entries else None


@pytest.mark.parametrize(
    ("line", "value"),
    [
        # As cuttlefish 3.0.1 reads them.
        ("a = 1", "1"),
        ("a=1", "1"),
        ("  a\t=\t1  ", "1"),
        ("a = 864000000 # 10 days", "864000000"),
        ("a = b#c", "b"),
        ("a = b=c", "b=c"),
        ("a = with spaces  inside   ", "with spaces  inside"),
        ('a = "/"', '"/"'),
        ("a = 'b", "'b"),
        ("a = C:\\x", "C:\\x"),
        ("a =", None),
        ("a = # nothing", None),
        ("a", None),
        ("a b = 1", None),
        ("a:b = 1", None),
        ("= 1", None),
        # Since 3.4.
        ("a = 'b#c'", "b#c"),
        ("a = 'b' # c", "b"),
    ],
)
def test_a_value_extends_to_a_comment_without_surrounding_space(line: str, value: str | None) -> None:
    assert value_of(line) == value


def test_empty_lines_and_comments_give_no_entries() -> None:
    assert parse("\n   \n# a = 1\n  ## b\n", "f") == ([], [])


def test_each_entry_has_its_file_and_line() -> None:
    entries, wrong = parse("# c\r\na = 1\r\n\r\nnonsense\r\nb.c = 2", "x.conf")
    assert entries == [Entry("a", "1", "x.conf:2"), Entry("b.c", "2", "x.conf:5")]
    assert wrong == ["x.conf:4"]


def test_a_byte_order_mark_is_ignored() -> None:
    assert parse("\ufeffa = 1", "f")[0] == [Entry("a", "1", "f:1")]


def test_an_escaped_point_belongs_to_a_name() -> None:
    (entry,), _ = parse("loopback_users.anna\\.b = true", "f")
    assert parts(entry.key) == ["loopback_users", "anna.b"]


def test_the_last_entry_of_a_key_counts() -> None:
    assert latest([Entry("a", "1", "f:1"), Entry("b", "2", "f:2"), Entry("a", "3", "g:1")]) == {
        "a": Entry("a", "3", "g:1"),
        "b": Entry("b", "2", "f:2"),
    }


VARIABLES = {"SEED_USER": "bob", "B": "c d", "a.b": "of a variable", "CYCLE": "$(CYCLE)"}


@pytest.mark.parametrize(
    ("value", "expanded"),
    [
        # As 3.10.8 and 4.3.6 start with them.
        ("$(SEED_USER)", "bob"),
        ("x$(SEED_USER)y", "xboby"),
        ("$(SEED_USER)-$(B)", "bob-c d"),
        ("$( SEED_USER )", "bob"),
        ("${SEED_USER}", "${SEED_USER}"),
        ("$SEED_USER", "$SEED_USER"),
        ("$(SEED_USER", "$(SEED_USER"),
        ("$(other.key)", "bob's"),
        ("$(a.b)", "of a variable"),
    ],
)
def test_a_reference_stands_for_another_key_or_a_variable(value: str, expanded: str) -> None:
    entries, wrong = parse(f"default_user = {value}\nother.key = $(SEED_USER)'s", "f")
    complete, errors = substituted(entries, VARIABLES)
    assert (complete[0].value, wrong, errors) == (expanded, [], [])


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("$(NONE)", "refers to 'NONE', which is neither a key nor a variable of the environment"),
        ("$()", "refers to '', which is neither a key nor a variable of the environment"),
        ("a$(default_user)", "refers to itself: default_user -> default_user"),
        ("$(other.key)", "refers to itself: default_user -> other.key -> default_user"),
        ("$(CYCLE)", "refers to itself: default_user -> CYCLE -> CYCLE"),
    ],
)
def test_a_reference_to_nothing_or_to_itself_is_an_error(value: str, error: str) -> None:
    entries, _ = parse(f"default_user = {value}\nheartbeat = 3\nother.key = $(default_user)", "f")
    complete, errors = substituted(entries, VARIABLES)
    assert [entry.key for entry in complete if entry.key == "heartbeat"] == ["heartbeat"]
    assert f"f:1: default_user {error}" in errors
