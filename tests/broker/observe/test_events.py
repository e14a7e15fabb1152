"""The names and headers of events are those that RabbitMQ 3.10.8's plugin sent for the same steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from amqp_broker.amqp import fields
from amqp_broker.broker.admin.access import Permission
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.admin.policies import Policy
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.clients.client_connection import Connection
from amqp_broker.broker.clients.peer import Tls
from amqp_broker.broker.exchanges.exchange import ExchangeDeclaration
from amqp_broker.broker.observe.events import EVENT_EXCHANGE
from amqp_broker.broker.queues.queue import Queue, QueueDeclaration
from amqp_broker.broker.vhost import VHost
from amqp_broker.settings.settings import Settings
from tests.broker_parts import CollectingConsumer, IdleConnection

NOW = 1_795_236_656_516
GUEST = {"user_who_performed_action": "guest"}
INTERNAL = {"user_who_performed_action": "rmq-internal"}


@pytest.fixture
def broker() -> Broker:
    """A broker whose queue `events` gets all events."""
    broker = Broker(Settings(), bytes)
    broker.now = NOW
    broker.add_defaults()
    vhost = broker.vhosts["/"]
    vhost.bind(vhost.exchanges[EVENT_EXCHANGE], declare(vhost, "events"), "#", {})
    broker.events.actor = "guest"
    heard(broker)
    return broker


@pytest.fixture
def vhost(broker: Broker) -> VHost:
    return broker.vhosts["/"]


@pytest.fixture
def connection(broker: Broker) -> Connection:
    connection = IdleConnection("127.0.0.1", 34702, "127.0.0.1", 5672, NOW)
    connection.client_properties = {"capabilities": {"basic.nack": True}, "connection_name": "probe"}
    connection.user = broker.users["guest"]
    broker.admit(connection, connection.user, "/")
    return connection


def declare(vhost: VHost, name: str, owner: Connection | None = None, **arguments: Any) -> Queue:
    return vhost.declare_queue(QueueDeclaration(name, arguments, owner=owner), owner)


def declare_exchange(vhost: VHost, name: str, is_auto_delete: bool = False, **arguments: Any) -> Any:
    return vhost.declare_exchange(ExchangeDeclaration(name, "topic", arguments, is_auto_delete=is_auto_delete))


def heard(broker: Broker) -> list[tuple[str, fields.Table]]:
    """Take all events from the queue; return their names and headers, without the time."""
    found = []
    while (pulled := broker.vhosts["/"].queues["events"].pull()) is not None:
        headers = pulled[0].properties().headers
        assert headers is not None
        assert headers.pop("timestamp_in_ms") == broker.now
        found.append((pulled[0].routing_key, headers))
    return found


def test_events_are_durable_messages_without_a_body(broker: Broker, vhost: VHost) -> None:
    declare(vhost, "q")
    pulled = vhost.queues["events"].pull()
    assert pulled is not None
    message = pulled[0]
    properties = message.properties().as_dict()
    assert list(properties) == ["headers", "delivery_mode", "timestamp"]
    assert (properties["delivery_mode"], properties["timestamp"], message.body) == (2, NOW // 1000, b"")
    assert list(properties["headers"])[-1] == "timestamp_in_ms"
    assert isinstance(properties["headers"]["timestamp_in_ms"], fields.Long)


def test_a_queue_is_created_once(broker: Broker, vhost: VHost) -> None:
    arguments: fields.Table = {"x-dead-letter-exchange": "", "x-max-length": fields.Byte(5)}
    declare(vhost, "q", **arguments)
    declare(vhost, "q", **arguments)
    assert heard(broker) == [
        (
            "queue.created",
            {
                **GUEST,
                "exclusive": False,
                "owner_pid": "",
                "arguments": [
                    '{<<"x-dead-letter-exchange">>,longstr,<<>>}',
                    '{<<"x-max-length">>,byte,5}',
                    '{<<"x-queue-type">>,longstr,<<"classic">>}',
                ],
                "auto_delete": False,
                "durable": False,
                "name": "q",
                "vhost": "/",
            },
        )
    ]


def test_deleting_a_queue_also_deletes_its_bindings(broker: Broker, vhost: VHost) -> None:
    queue = declare(vhost, "q")
    vhost.bind(vhost.exchanges["amq.topic"], queue, "k.#", {"a": fields.Byte(1)})
    _, bound = heard(broker)
    vhost.remove_queue(queue)
    binding = {
        **GUEST,
        "vhost": "/",
        "arguments": ['{<<"a">>,byte,1}'],
        "routing_key": "k.#",
        "destination_kind": "queue",
        "destination_name": "q",
        "source_kind": "exchange",
        "source_name": "amq.topic",
    }
    assert bound == ("binding.created", binding)
    assert heard(broker) == [("binding.deleted", binding), ("queue.deleted", {**GUEST, "name": "q", "vhost": "/"})]


def test_an_auto_delete_exchange_is_deleted_with_its_last_binding(broker: Broker, vhost: VHost) -> None:
    exchange = declare_exchange(vhost, "x", is_auto_delete=True)
    vhost.bind(exchange, vhost.exchanges["amq.fanout"], "", {})
    created, (bound, binding) = heard(broker)
    vhost.unbind(next(iter(exchange.bindings.values())))
    assert created == (
        "exchange.created",
        {
            **GUEST,
            "policy": "",
            "arguments": [],
            "internal": False,
            "auto_delete": True,
            "durable": False,
            "type": "topic",
            "name": "x",
            "vhost": "/",
        },
    )
    assert (bound, binding["destination_kind"], binding["destination_name"]) == (
        "binding.created",
        "exchange",
        "amq.fanout",
    )
    gone = ("exchange.deleted", {**GUEST, "name": "x", "vhost": "/"})
    assert sorted(heard(broker), key=lambda event: event[0]) == [("binding.deleted", binding), gone]


def test_a_consumer_is_created_and_deleted(broker: Broker, vhost: VHost, connection: Connection) -> None:
    queue = declare(vhost, "q")
    heard(broker)
    arguments: fields.Table = {"x-priority": fields.Byte(3)}
    consumer = CollectingConsumer(
        queue, connection=connection, tag="c", is_exclusive=True, prefetch=7, priority=3, arguments=arguments
    )
    consumer.number = 2
    queue.subscribe(consumer)
    queue.unsubscribe(consumer)
    place = {"queue": "q", "vhost": "/", "channel": "127.0.0.1:34702 -> 127.0.0.1:5672 (2)"}
    created = {**GUEST, "arguments": ['{<<"x-priority">>,byte,3}'], "prefetch_count": 7, **place}
    created |= {"ack_required": True, "exclusive": True, "consumer_tag": "c"}
    assert heard(broker) == [
        ("consumer.created", created),
        ("consumer.deleted", {**GUEST, **place, "consumer_tag": "c"}),
    ]


def test_a_connection_is_created_and_closed_once(broker: Broker, connection: Connection) -> None:
    negotiated = {"channel_max": 2047, "frame_max": 131072, "timeout": 60, "auth_mechanism": "PLAIN"}
    broker.events.connection_created(connection, **negotiated)
    broker.dismiss(connection)
    broker.dismiss(connection)
    (created, told), *rest = heard(broker)
    told_to_all = {
        "client_properties": [
            '{<<"capabilities">>,table,[{<<"basic.nack">>,bool,true}]}',
            '{<<"connection_name">>,longstr,<<"probe">>}',
        ],
        "node": "rabbit@localhost",
        "name": "127.0.0.1:34702 -> 127.0.0.1:5672",
        "pid": "127.0.0.1:34702 -> 127.0.0.1:5672",
        "user_provided_name": "probe",
    }
    addresses = {"peer_host": "{127,0,0,1}", "host": "{127,0,0,1}", "peer_port": 34702, "port": 5672}
    assert (created, told) == (
        "connection.created",
        {
            **GUEST,
            **told_to_all,
            **negotiated,
            **addresses,
            "connected_at": NOW,
            "vhost": "/",
            "user": "guest",
            "protocol": "{0,9,1}",
            "ssl": False,
            "type": "network",
        },
    )
    assert rest == [("connection.closed", told_to_all)]


def test_a_channel_is_created_and_closed(broker: Broker, connection: Connection) -> None:
    broker.events.channel_created(connection, 3)
    broker.events.channel_closed(connection, 3)
    name = f"{connection.name} (3)"
    assert heard(broker) == [
        (
            "channel.created",
            {
                **GUEST,
                "vhost": "/",
                "user": "guest",
                "number": 3,
                "connection": connection.name,
                "name": name,
                "pid": name,
            },
        ),
        ("channel.closed", {**GUEST, "pid": name}),
    ]


def test_a_login_is_an_event_whether_it_succeeds_or_not(broker: Broker, connection: Connection) -> None:
    broker.events.authenticated(connection, "guest", "PLAIN")
    broker.events.authenticated(connection, "guest", "PLAIN", "user 'guest' - invalid credentials")
    (success, told), (failure, headers) = heard(broker)
    assert (success, told) == (
        "user.authentication.success",
        {
            "ssl": False,
            "auth_mechanism": "PLAIN",
            "protocol": "{0,9,1}",
            "peer_port": 34702,
            "peer_host": "{127,0,0,1}",
            "connection_name": connection.name,
            "host": "{127,0,0,1}",
            "name": "guest",
            "connection_type": "network",
        },
    )
    assert (failure, headers) == (
        "user.authentication.failure",
        {"error": "user 'guest' - invalid credentials", **told},
    )


def test_a_vhost_is_created_with_its_exchanges(broker: Broker) -> None:
    broker.add_vhost("v")
    *exchanges, created = heard(broker)
    assert {(name, headers["vhost"]) for name, headers in exchanges} == {("exchange.created", "v")}
    assert [headers["name"] for _, headers in exchanges] == list(broker.vhosts["v"].exchanges)
    assert created == ("vhost.created", {**GUEST, "tracing": False, "name": "v"})


def test_changes_of_users_and_permissions_are_events(broker: Broker) -> None:
    user = broker.users.add("u", "p")
    broker.users.set_permission(user, "/", Permission("a", "b", "c"))
    assert heard(broker) == [
        ("user.created", {**GUEST, "name": "u"}),
        ("permission.created", {**GUEST, "read": "c", "write": "b", "configure": "a", "vhost": "/", "user": "u"}),
    ]


def policy(name: str, length_max: int, pattern: str = "^q") -> Policy:
    return Policy(name, pattern, {"max-length": length_max})


def told_of(one: Policy, **headers: Any) -> dict[str, Any]:
    """Return the headers of an event about a policy."""
    definition = {"apply-to": "all", "priority": 0, "definition": one.definition, "pattern": one.pattern}
    return {**GUEST, **definition, "vhost": "/", **headers}


def test_a_policy_is_an_event_after_those_of_the_queues_that_it_changes(broker: Broker, vhost: VHost) -> None:
    declare(vhost, "q")
    heard(broker)
    queue = {"name": "q", "type": "rabbit_classic_queue"}
    one = policy("p", 5)
    vhost.policies.set(one)
    assert heard(broker) == [("queue.policy.updated", told_of(one, **queue)), ("policy.set", told_of(one, name="p"))]
    vhost.policies.set(policy("p", 5))
    assert heard(broker) == []
    other = policy("z", 7)
    vhost.policies.set(other)  # the other one still applies
    assert heard(broker) == [("policy.set", told_of(other, name="z"))]
    vhost.policies.clear("p")
    assert heard(broker) == [
        ("queue.policy.cleared", {**GUEST, **queue, "vhost": "/"}),
        ("policy.cleared", {**GUEST, "vhost": "/", "name": "p"}),
    ]


def test_an_operator_policy_is_also_a_parameter(broker: Broker, vhost: VHost) -> None:
    declare(vhost, "q")
    heard(broker)
    one = policy("o", 3)
    vhost.operator_policies.set(one)
    value = {"apply-to": "all", "priority": 0, "definition": {"max-length": 3}, "pattern": "^q"}
    parameter = {**GUEST, "vhost": "/", "component": "operator_policy", "name": "o"}
    assert heard(broker) == [
        ("parameter.set", {**parameter, "value": value}),
        ("queue.policy.updated", told_of(one, name="q", type="rabbit_classic_queue")),
        ("policy.set", told_of(one, name="o")),
    ]
    vhost.operator_policies.clear("o")
    (cleared, headers), (name, _), _ = heard(broker)
    assert (cleared, headers, name) == ("parameter.cleared", parameter, "queue.policy.cleared")


def test_a_limit_of_a_vhost_is_also_a_parameter(broker: Broker, vhost: VHost) -> None:
    vhost.limits.set("max-queues", 100)
    vhost.limits.clear("max-queues")
    parameter = {**GUEST, "vhost": "/", "component": "vhost-limits", "name": "limits"}
    assert heard(broker) == [
        ("parameter.set", {**parameter, "value": {"max-queues": 100}}),
        ("vhost.limits.set", {**GUEST, "name": "limits", "max-queues": 100}),
        ("parameter.cleared", parameter),
        ("vhost.limits.cleared", {**GUEST, "name": "limits"}),
    ]


def test_all_limits_of_a_vhost_are_set_or_cleared_at_once(broker: Broker, vhost: VHost) -> None:
    vhost.limits.replace({"max-queues": 5})
    vhost.limits.replace({})
    parameter = {**GUEST, "vhost": "/", "component": "vhost-limits", "name": "limits"}
    assert heard(broker) == [
        ("parameter.set", {**parameter, "value": {"max-queues": 5}}),
        ("vhost.limits.set", {**GUEST, "name": "limits", "max-queues": 5}),
        ("parameter.cleared", parameter),
        ("vhost.limits.cleared", {**GUEST, "name": "limits"}),
    ]


def test_a_change_of_a_parameter_is_one_event(broker: Broker, vhost: VHost) -> None:
    vhost.parameters.set("shovel", "s", {"a": [1.5, None]})
    vhost.parameters.set("shovel", "s", {"a": [1.5, None]})
    vhost.parameters.clear("shovel", "s")
    broker.global_parameters.set("g", 1)
    broker.global_parameters.clear("g")
    parameter = {**GUEST, "vhost": "/", "component": "shovel", "name": "s"}
    assert heard(broker) == [
        ("parameter.set", {**parameter, "value": {"a": [1.5, None]}}),
        ("parameter.cleared", parameter),
        ("parameter.set", {**GUEST, "component": "global", "name": "g", "value": 1}),
        ("parameter.cleared", {**GUEST, "component": "global", "name": "g"}),
    ]


def test_a_change_of_vhost_metadata_is_an_event(broker: Broker, vhost: VHost) -> None:
    vhost.set_metadata(Metadata("d", ("a",), "quorum"))
    vhost.set_metadata(Metadata("d", ("a",), "quorum"))
    assert heard(broker) == [
        (
            "vhost.updated",
            {
                **GUEST,
                "tracing": False,
                "default_queue_type": "quorum",
                "tags": ["a"],
                "description": "d",
                "name": "/",
            },
        )
    ]


def test_an_alarm_is_an_event_when_it_is_set_and_when_it_is_cleared(broker: Broker) -> None:
    for is_on in (True, True, False, False):
        broker.set_alarm("memory", is_on)
    alarm = {"node": "rabbit@localhost", "source": "memory"}
    assert heard(broker) == [("alarm.set", alarm), ("alarm.cleared", alarm)]


def test_other_packages_can_emit_events(broker: Broker) -> None:
    broker.events.emit("policy.set", **{"apply-to": "queues", "priority": 2, "definition": {"max-length": 3}})
    [(name, headers)] = heard(broker)
    assert (name, headers) == ("policy.set", {"apply-to": "queues", "priority": 2, "definition": {"max-length": 3}})
    assert type(headers["priority"]) is type(headers["definition"]["max-length"]) is fields.Long


def test_the_user_of_changes_without_a_request_is_internal(broker: Broker, vhost: VHost) -> None:
    broker.events.actor = "rmq-internal"
    declare(vhost, "q", None, **{"x-expires": 100})
    heard(broker)
    broker.tick(NOW + 100)
    assert heard(broker) == [("queue.deleted", {**INTERNAL, "name": "q", "vhost": "/"})]


def test_the_default_vhost_has_the_events_of_all_vhosts(broker: Broker) -> None:
    vhost = broker.add_vhost("v")
    heard(broker)
    assert EVENT_EXCHANGE not in vhost.exchanges
    declare(vhost, "q")
    assert [(name, headers["vhost"]) for name, headers in heard(broker)] == [("queue.created", "v")]


def test_a_queue_gets_the_events_that_it_is_bound_for(broker: Broker, vhost: VHost) -> None:
    vhost.unbind(next(iter(vhost.exchanges[EVENT_EXCHANGE].bindings.values())))
    vhost.bind(vhost.exchanges[EVENT_EXCHANGE], vhost.queues["events"], "queue.*", {})
    declare_exchange(vhost, "x")
    declare(vhost, "q")
    assert [name for name, _ in heard(broker)] == ["queue.created"]


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (None, "void,undefined"),
        (True, "bool,true"),
        (fields.Long(7), "long,7"),
        ([1, "a"], 'array,[{signedint,1},{longstr,<<"a">>}]'),
    ],
)
def test_arguments_in_events_are_erlang_terms(broker: Broker, vhost: VHost, value: fields.Value, term: str) -> None:
    declare_exchange(vhost, "x", a=value)
    [(_, headers)] = heard(broker)
    assert headers["arguments"] == [f'{{<<"a">>,{term}}}']


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("::1", "{0,0,0,0,0,0,0,1}"),
        ("::ffff:127.0.0.1", "{0,0,0,0,0,65535,32512,1}"),
        ("10.1.2.3", "{10,1,2,3}"),
        ("", ""),
    ],
)
def test_addresses_in_events_are_erlang_tuples(broker: Broker, host: str, shown: str) -> None:
    broker.events.authenticated(IdleConnection(host, 1, host, 2, 0), "u", "PLAIN")
    [(_, headers)] = heard(broker)
    assert headers["peer_host"] == headers["host"] == shown


TLS = Tls("tlsv1.3", "any", "aes_256_gcm", "aead")
CERTIFICATE = {"peer_cert_subject": "CN=anna", "peer_cert_issuer": "CN=ca", "peer_cert_validity": "a - b"}
SUITE = {"ssl": True, "ssl_protocol": "tlsv1.3", "ssl_cipher": "aes_256_gcm"}


def of_tls(headers: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in headers.items() if name.startswith(("ssl", "peer_cert"))}


@pytest.mark.parametrize("certificate", [{}, CERTIFICATE], ids=["none", "one"])
def test_a_login_over_tls_has_tls_headers_and_a_certificate_if_there_is_one(
    broker: Broker, connection: Connection, certificate: dict[str, str]
) -> None:
    connection.tls = replace(TLS, **certificate)
    broker.events.authenticated(connection, "guest", "PLAIN")
    broker.events.authenticated(connection, "", "EXTERNAL", "no name found")
    (_, told), (_, failure) = heard(broker)
    assert of_tls(told) == of_tls(failure) == {**SUITE, **certificate}
    assert "name" not in failure


@pytest.mark.parametrize("certificate", [{}, CERTIFICATE], ids=["none", "one"])
def test_a_connection_over_tls_has_all_tls_headers(
    broker: Broker, connection: Connection, certificate: dict[str, str]
) -> None:
    connection.tls = replace(TLS, **certificate)
    connection.user, connection.vhost = broker.users["guest"], broker.vhosts["/"]
    broker.events.connection_created(connection)
    [(_, told)] = heard(broker)
    none = dict.fromkeys(CERTIFICATE, "")
    assert of_tls(told) == {**SUITE, "ssl_key_exchange": "any", "ssl_hash": "aead", **none, **certificate}


# Listeners


def test_a_listener_gets_every_event_without_a_queue_until_it_is_removed() -> None:
    broker = Broker(Settings(), bytes)
    broker.add_defaults()
    heard: list[tuple[str, dict[str, Any]]] = []

    def listener(name: str, headers: dict[str, Any]) -> None:
        heard.append((name, headers))

    broker.events.listen(listener)
    broker.users.add("anna", "secret")
    assert heard == [("user.created", {"name": "anna", "user_who_performed_action": "rmq-internal"})]
    broker.events.unlisten(listener)
    broker.users.delete("anna")
    assert len(heard) == 1
