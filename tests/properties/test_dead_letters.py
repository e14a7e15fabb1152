"""A dead letter has the same octets, whichever messages died before it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp import commands

from amqp_broker.amqp.message import Address, Message, Properties, SpecialMessage, with_property_list
from amqp_broker.broker.routing.dead_letter import dead_letter, push
from tests.peer import Lab
from tests.properties.generators import examples
from tests.properties.test_property_list import KEYS, lists

ADDRESS = Address("", "q")
EMPTY = Message.build(ADDRESS, Properties(), b"body").content
# Before, between and behind the headers of a dead letter.
KEYS_AROUND = KEYS.filter(lambda key: b"CC" not in key) | st.sampled_from(
    [b"x-death", b"x-delay", b"x-first-death-queue", b"x-last-death-reason", b"x-z"]
)
OTHER_LISTS = [
    Properties(**values).encode()
    for values in ({}, {"content_type": "t", "content_encoding": "e"}, {"headers": {"CC": ["copy"], "a": 1}})
]


@st.composite
def messages(draw: st.DrawFn) -> Message:
    content = with_property_list(EMPTY, draw(lists(KEYS_AROUND) | st.sampled_from(OTHER_LISTS)))
    if draw(st.integers(0, 4)):
        return Message(ADDRESS, content, 1, False)
    blind_keys = draw(st.sampled_from([(), ("blind",)]))
    return SpecialMessage(
        ADDRESS, content, 1, False, blind_keys=blind_keys, has_died=draw(st.booleans()), is_rerouted=draw(st.booleans())
    )


@settings(max_examples=examples(10))
@given(st.lists(messages(), min_size=2, max_size=6), st.sampled_from(["3.13", "4.2"]), st.booleans())
def test_a_dead_letter_does_not_depend_on_those_before_it(
    dying: list[Message], compat: str, has_routing_key: bool
) -> None:
    lab = Lab(compat=compat)
    peer = lab.connect()
    peer.declare("dead")
    arguments = {"x-dead-letter-exchange": "amq.fanout"}
    if has_routing_key:
        arguments["x-dead-letter-routing-key"] = "other"
    peer.declare("q", arguments=arguments)
    peer.call(commands.Queue.Bind(0, "dead", "amq.fanout", ""))
    vhost = lab.broker.vhosts["/"]
    dead, queue = vhost.queues["dead"], vhost.queues["q"]

    def dead_letter_of(message: Message) -> tuple[object, ...]:
        letter = dead_letter(vhost, queue, message, "rejected", 5000)
        assert letter is not None
        push(vhost, letter)
        pulled = dead.pull()
        assert pulled is not None
        found = pulled[0]
        assert isinstance(found, SpecialMessage)
        return found.address.routing_key, found.content, found.blind_keys, found.is_rerouted

    together = [dead_letter_of(message) for message in dying]
    for message, found in zip(dying, together, strict=True):
        vhost.dead_forms.clear()
        assert dead_letter_of(message) == found
