from __future__ import annotations

import pytest

from amqp_broker.broker.lab.habits import HABITS, family, is_reply, named, removed_from


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("amq.gen-JzTY20BRgKO-HjmUJj0wLg", "amq.gen-*"),
        ("spring.gen-JzTY20BRgKO_HjmUJj0wLg", "spring.gen-*"),
        ("reply-6ba7b810-9dad-11d1-80b4-00c04fd430c8.q", "reply-*.q"),
        ("amq_0123456789abcdef0123456789abcdef", "amq_*"),
        ("job.1700000000000.done", "job.*.done"),
    ],
)
def test_generated_parts_of_a_name_become_a_star(name: str, origin: str) -> None:
    assert family(name) == origin


@pytest.mark.parametrize(
    "name",
    ["", "orders", "shard-17", "orders.2024-01-31", "deadbeefdeadbeef", "celery@host.celery.pidbox"],
)
def test_chosen_names_are_kept(name: str) -> None:
    assert family(name) == name


def test_only_the_default_exchange_has_replies() -> None:
    name = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    assert is_reply("", name)
    assert is_reply("", "amq.rabbitmq.reply-to.g1h2")
    assert not is_reply("orders", name)
    assert not is_reply("", "orders")


def test_arguments_that_are_no_more_are_named() -> None:
    assert removed_from({"x-queue-mode": "lazy", "x-expires": 5}, "x-") == ["x-queue-mode"]
    assert removed_from({"queue-version": 1, "queue-mode": "lazy"}) == ["queue-mode", "queue-version"]
    assert removed_from({"queue-version": 2}) == []


def test_all_stands_for_every_habit() -> None:
    assert named(["all"]) == set(HABITS)
    assert named(["polling"]) == {"polling"}
    assert named([]) == set()


def test_an_unknown_habit_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown habit 'poling'"):
        named(["poling", "polling"])
