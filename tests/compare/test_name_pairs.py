from __future__ import annotations

from pamqp import commands

from amqp_broker.amqp.fields import Long
from amqp_broker.compare.name_pairs import NAMES_MAX, NamePairs, each_text
from amqp_broker.shovel.amqp_client import call
from tests.present import present

GEN, LOCAL = "amq.gen-" + "a" * 22, "amq.gen-" + "b" * 22


def test_names_are_translated_in_both_directions() -> None:
    names = NamePairs()
    names.pair(GEN, LOCAL)
    assert (names.to_local(GEN), names.to_upstreams(LOCAL), names.to_local("q")) == (LOCAL, GEN, "q")
    assert names.as_upstream(f"no queue '{LOCAL}' in vhost") == f"no queue '{GEN}' in vhost"


def test_names_in_arguments_are_translated_and_types_kept() -> None:
    names = NamePairs()
    names.pair(GEN, LOCAL)
    method = call(
        commands.Queue.Declare, queue="q", arguments={"x-dead-letter-routing-key": GEN, "n": [Long(1), {"k": GEN}]}
    )
    assert names.translate(method)
    assert method.arguments == {"x-dead-letter-routing-key": LOCAL, "n": [1, {"k": LOCAL}]}
    numbers = present(method.arguments)["n"]
    assert isinstance(numbers, list)
    assert type(numbers[0]) is Long


def test_a_method_without_generated_names_is_unchanged() -> None:
    names = NamePairs()
    names.pair(GEN, LOCAL)
    assert not names.translate(call(commands.Queue.Declare, queue="q", arguments={}))


def test_old_names_are_removed() -> None:
    names = NamePairs()
    for number in range(NAMES_MAX + 1):
        names.pair(f"u{number}", f"o{number}")
    assert names.to_local("u0") == "u0"
    assert names.to_local(f"u{NAMES_MAX}") == f"o{NAMES_MAX}"


def test_each_string_of_a_value_is_changed() -> None:
    assert each_text({"a": ["b", 1]}, str.upper) == {"a": ["B", 1]}
