from __future__ import annotations

import pytest
from pamqp.commands import Exchange
from pamqp.common import FieldTable

from amqp_broker.amqp.errors import PreconditionFailed
from amqp_broker.broker.exchanges.types import EXCHANGE_TYPES, exchange_types
from amqp_broker.settings.profiles import PROFILES
from tests.broker_parts import bind, new_exchange, new_queue, new_vhost
from tests.peer import Lab, Peer

ARGUMENTS: dict[str, FieldTable] = {
    "x-delayed-message": {"x-delayed-type": "fanout"},
    "x-message-deduplication": {"x-cache-size": 10},
}


def declare(peer: Peer, name: str, kind: str) -> None:
    peer.call(Exchange.Declare(exchange=name, exchange_type=kind, arguments=ARGUMENTS.get(kind, {})))


@pytest.mark.parametrize(("compat", "missing"), [("3.13", {"x-local-random"}), ("4.2", set()), ("4.3", set())])
def test_a_version_of_rabbitmq_has_its_types(compat: str, missing: set[str]) -> None:
    assert set(EXCHANGE_TYPES) - set(exchange_types(PROFILES[compat])) == missing


def test_a_type_that_a_version_lacks_is_unknown() -> None:
    peer = Lab(compat="3.13").connect()
    peer.send(Exchange.Declare(exchange="x", exchange_type="x-local-random"))
    assert peer.expect_channel_close(406) == "PRECONDITION_FAILED - unknown exchange type 'x-local-random'"


@pytest.mark.parametrize(
    ("kind", "text"), [("nonsense", "unknown exchange type 'nonsense'"), ("", "invalid exchange type ''")]
)
def test_declaring_an_exchange_of_an_unknown_type_is_an_error(kind: str, text: str) -> None:
    vhost = new_vhost()
    for _ in range(2):
        with pytest.raises(PreconditionFailed) as caught:
            new_exchange(vhost, "x", kind)
        assert str(caught.value) == text
        # The error is the same if the exchange exists.
        if "x" not in vhost.exchanges:
            new_exchange(vhost, "x", "fanout")


def test_an_exchange_with_wrong_arguments_is_not_created() -> None:
    vhost = new_vhost()
    with pytest.raises(PreconditionFailed):
        new_exchange(vhost, "x", "x-delayed-message")
    assert "x" not in vhost.exchanges
    new_exchange(vhost, "x", "direct")


@pytest.mark.parametrize("kind", EXCHANGE_TYPES)
def test_an_exchange_of_each_type_routes_published_messages(kind: str) -> None:
    peer = Lab().connect()
    declare(peer, "x", kind)
    vhost = peer.lab.vhost
    key = "" if kind == "x-local-random" else "1"
    bind(vhost.exchanges["x"], new_queue(vhost), vhost, key)
    for headers in ({}, {"CC": ["other"], "BCC": ["blind"]}):
        peer.publish(key, b"one", exchange="x", mandatory=True, headers=headers)
        got = peer.get("q")
        assert got is not None
        assert (got[0].exchange, got[1].body) == ("x", b"one")
        # Several keys lead to the queue, which gets one copy.
        assert peer.get("q") is None


@pytest.mark.parametrize("kind", EXCHANGE_TYPES)
def test_an_exchange_of_each_type_routes_dead_letters(kind: str) -> None:
    peer = Lab().connect()
    declare(peer, "x", kind)
    vhost = peer.lab.vhost
    key = "" if kind == "x-local-random" else "1"
    bind(vhost.exchanges["x"], new_queue(vhost), vhost, key)
    new_queue(vhost, "dying", arguments={"x-dead-letter-exchange": "x", "x-message-ttl": 5})
    peer.publish("dying", b"one", headers={"CC": [key]})
    peer.lab.advance(5)
    got = peer.get("q")
    assert got is not None
    assert (got[0].exchange, got[1].body) == ("x", b"one")


@pytest.mark.parametrize("kind", EXCHANGE_TYPES)
def test_an_exchange_of_each_type_may_be_an_alternate_exchange(kind: str) -> None:
    peer = Lab().connect()
    declare(peer, "x", kind)
    vhost = peer.lab.vhost
    key = "" if kind == "x-local-random" else "1"
    bind(vhost.exchanges["x"], new_queue(vhost), vhost, key)
    new_exchange(vhost, "first", "direct", arguments={"alternate-exchange": "x"})
    peer.publish(key, b"one", exchange="first", mandatory=True)
    got = peer.get("q")
    assert got is not None
    assert got[1].body == b"one"


@pytest.mark.parametrize("kind", EXCHANGE_TYPES)
def test_an_exchange_of_each_type_has_an_alternate_exchange(kind: str) -> None:
    peer = Lab().connect()
    vhost = peer.lab.vhost
    new_exchange(vhost, "x", kind, arguments={"alternate-exchange": "amq.fanout", **ARGUMENTS.get(kind, {})})
    bind(vhost.exchanges["amq.fanout"], new_queue(vhost), vhost)
    peer.publish("1", b"one", exchange="x", mandatory=True)
    got = peer.get("q")
    assert got is not None
    assert got[1].body == b"one"


@pytest.mark.parametrize("kind", [kind for kind in EXCHANGE_TYPES if kind != "x-local-random"])
def test_an_exchange_of_each_type_passes_messages_on_to_another(kind: str) -> None:
    peer = Lab().connect()
    declare(peer, "x", kind)
    vhost = peer.lab.vhost
    bind(vhost.exchanges["x"], vhost.exchanges["amq.direct"], vhost, "1")
    bind(vhost.exchanges["amq.direct"], new_queue(vhost), vhost, "1")
    peer.publish("1", b"one", exchange="x", mandatory=True)
    got = peer.get("q")
    assert got is not None
    assert got[1].body == b"one"


@pytest.mark.parametrize("kind", EXCHANGE_TYPES)
def test_an_exchange_of_each_type_gets_messages_from_another(kind: str) -> None:
    peer = Lab().connect()
    declare(peer, "x", kind)
    vhost = peer.lab.vhost
    bind(vhost.exchanges["amq.fanout"], vhost.exchanges["x"], vhost)
    bind(vhost.exchanges["x"], new_queue(vhost), vhost, "" if kind == "x-local-random" else "1")
    peer.publish("1", b"one", exchange="amq.fanout", mandatory=True)
    got = peer.get("q")
    assert got is not None
    assert got[1].body == b"one"


@pytest.mark.parametrize("kind", [kind for kind in EXCHANGE_TYPES if kind != "x-delayed-message"])
def test_a_message_for_any_type_may_be_delayed(kind: str) -> None:
    lab = Lab()
    peer = lab.connect()
    new_exchange(lab.vhost, "x", "x-delayed-message", arguments={**ARGUMENTS.get(kind, {}), "x-delayed-type": kind})
    key = "" if kind == "x-local-random" else "1"
    bind(lab.vhost.exchanges["x"], new_queue(lab.vhost), lab.vhost, key)
    peer.publish(key, b"one", exchange="x", headers={"x-delay": 1000})
    lab.advance(999)
    assert peer.get("q") is None
    lab.advance(1)
    got = peer.get("q")
    assert got is not None
    assert got[1].body == b"one"


@pytest.mark.parametrize("kind", EXCHANGE_TYPES)
def test_an_exchange_of_each_type_drops_deleted_bindings(kind: str) -> None:
    lab = Lab()
    peer = lab.connect()
    declare(peer, "x", kind)
    queue = new_queue(lab.vhost)
    bind(lab.vhost.exchanges["x"], queue, lab.vhost, "" if kind == "x-local-random" else "1")
    lab.vhost.remove_queue(queue)
    peer.publish("1", b"one", exchange="x", mandatory=True)
    assert peer.next()[0].name == "Basic.Return"
    assert not lab.vhost.exchanges["x"].bindings


@pytest.mark.parametrize("kind", EXCHANGE_TYPES)
def test_only_routing_keys_decide_on_a_cached_route(kind: str) -> None:
    peer = Lab().connect()
    declare(peer, "x", kind)
    plain = {"direct", "fanout", "topic", "x-consistent-hash", "x-modulus-hash"}
    vhost = peer.lab.vhost
    bind(vhost.exchanges["x"], new_queue(vhost), vhost, "" if kind == "x-local-random" else "1")
    peer.publish("1", exchange="x")
    [route] = peer.session.routes.values()
    assert route.is_plain is (kind in plain)
