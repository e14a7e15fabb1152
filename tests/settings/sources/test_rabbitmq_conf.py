from __future__ import annotations

import pytest

from amqp_broker.settings.sources.rabbitmq_conf import Entry, latest, parse, parts


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
