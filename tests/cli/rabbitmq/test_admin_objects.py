from __future__ import annotations

import re

import pytest

from amqp_broker.cli.rabbitmq.admin_objects import NOUNS, OBJECTS


@pytest.mark.parametrize("kind", OBJECTS)
def test_the_fields_in_a_path_are_given_or_have_defaults(kind: str) -> None:
    thing = OBJECTS[kind]
    assumed = {"vhost", "destination_char"}
    assert set(re.findall(r"\{(\w+)\}", thing.path)) <= {*thing.needed, *assumed}
    gone = thing.delete_path or thing.path
    assert set(re.findall(r"\{(\w+)\}", gone)) <= {*thing.named_by, *assumed, "properties_key"} or not thing.named_by


@pytest.mark.parametrize(
    ("noun", "kind"), [("queues", "queue"), ("policies", "policy"), ("vhost_limits", "vhost_limit"), ("user", "user")]
)
def test_kinds_have_a_singular_and_a_plural(noun: str, kind: str) -> None:
    assert NOUNS[noun] == kind
