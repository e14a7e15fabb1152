from __future__ import annotations

from dataclasses import replace

import pytest

from amqp_broker.amqp.message import Address, Message, Properties
from amqp_broker.shovel.forwarding import changed, forward_header
from amqp_broker.shovel.shovel import Shovel
from amqp_broker.shovel.shovel_definition import Static, parse
from tests.shovel.pair import Pair

GIVEN = {"src-uri": "amqp://", "src-queue": "a", "dest-uri": "amqp://", "dest-exchange": "x"}


def shovel(*, is_static: bool = False, **given: object) -> Shovel:
    pair, value = Pair(), {**GIVEN, **{key.replace("_", "-"): item for key, item in given.items()}}
    definition = parse("s", value)
    if is_static:
        definition = replace(definition, static=Static((), ()))
    return Shovel("s", "v", definition, pair, "here", pair.done.append, pair.time)


def test_a_message_that_nothing_changes_keeps_its_octets() -> None:
    message = Message.build(Address("", "a"), Properties(), b"m")
    assert changed(shovel(), message) is message


@pytest.mark.parametrize(
    ("is_static", "names"),
    [
        (False, {"shovel-vhost": "v", "shovel-type": "dynamic", "src-queue": "a", "dest-exchange": "x"}),
        (True, {"shovel-type": "static"}),
    ],
)
def test_the_header_of_a_static_shovel_names_no_vhost_and_no_objects(is_static: bool, names: dict[str, str]) -> None:
    common = {"shovelled-by": "here", "shovel-name": "s", "src-uri": "amqp://", "dest-uri": "amqp://"}
    assert forward_header(shovel(is_static=is_static)) == {**common, **names}
