from __future__ import annotations

from pamqp import commands

from amqp_broker.compare.names import NAMES_MAX, Names, each_text
from amqp_broker.fields import Long
from amqp_broker.shovel.client import call

GEN, OURS = "amq.gen-" + "a" * 22, "amq.gen-" + "b" * 22


def test_names_are_known_both_ways() -> None:
    names = Names()
    names.pair(GEN, OURS)
    assert (names.to_ours(GEN), names.to_upstreams(OURS), names.to_ours("q")) == (OURS, GEN, "q")
    assert names.as_upstream(f"no queue '{OURS}' in vhost") == f"no queue '{GEN}' in vhost"


def test_names_in_arguments_are_translated_and_types_are_kept() -> None:
    names = Names()
    names.pair(GEN, OURS)
    method = call(
        commands.Queue.Declare, queue="q", arguments={"x-dead-letter-routing-key": GEN, "n": [Long(1), {"k": GEN}]}
    )
    assert names.translate(method)
    assert method.arguments == {"x-dead-letter-routing-key": OURS, "n": [1, {"k": OURS}]}  # type: ignore[attr-defined]
    assert type(method.arguments["n"][0]) is Long  # type: ignore[attr-defined]


def test_a_method_without_such_names_is_not_changed() -> None:
    names = Names()
    names.pair(GEN, OURS)
    assert not names.translate(call(commands.Queue.Declare, queue="q", arguments={}))


def test_old_names_are_forgotten() -> None:
    names = Names()
    for number in range(NAMES_MAX + 1):
        names.pair(f"u{number}", f"o{number}")
    assert names.to_ours("u0") == "u0"
    assert names.to_ours(f"u{NAMES_MAX}") == f"o{NAMES_MAX}"


def test_each_text_of_a_value_is_changed() -> None:
    assert each_text({"a": ["b", 1]}, str.upper) == {"a": ["B", 1]}
