"""Refusing an invalid document before anything is changed, and skipping objects."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.errors import DoesNotExist
from amqp_broker.broker.admin.metadata import Metadata
from amqp_broker.broker.broker import Broker
from amqp_broker.broker.scheduling.portions import finished
from amqp_broker.management.documents.definition import DefinitionsError
from amqp_broker.management.documents.exporting import export
from amqp_broker.management.documents.importing import Import, import_, importing
from tests.broker_parts import new_broker, new_exchange, new_queue

QUEUE = {"vhost": "/", "name": "q", "durable": True, "auto_delete": False, "arguments": {}}
EXCHANGE = {"vhost": "/", "name": "e", "type": "topic"}
BINDING = {"vhost": "/", "source": "e", "destination": "q", "destination_type": "queue", "routing_key": "k"}
POLICY = {"vhost": "/", "name": "p", "pattern": "^q", "definition": {"max-length": 5}}
PERMISSION = {"user": "guest", "vhost": "/", "configure": "", "write": "", "read": ""}


@pytest.fixture
def broker() -> Broker:
    return new_broker()


def reason(broker: Broker, document: Any, vhost: str | None = None) -> str:
    """Why a document is refused, which has changed nothing."""
    before = export(broker)
    with pytest.raises(DefinitionsError) as caught:
        import_(broker, document, vhost)
    assert export(broker) == before
    return str(caught.value)


# Refused objects, after a valid one

REFUSED = [
    ("users", {"tags": ""}, "user 2 has no name"),
    ("users", {"name": 5, "tags": ""}, "name of user 2 should be a string, actually was 5"),
    ("users", {"name": "u"}, "user 'u' has no tags (tags_not_present)"),
    ("users", {"name": "u", "tags": 5}, "tags of user 'u' should be an array of strings, actually was 5"),
    ("users", {"name": "u", "tags": [5]}, "tags of user 'u' should be an array of strings, actually was [5]"),
    ("users", {"name": "u", "tags": "", "password_hash": "!!"}, "user 'u': password hash is not base64"),
    (
        "users",
        {"name": "u", "tags": "", "hashing_algorithm": "rot13"},
        "user 'u': hashing algorithm 'rot13' is none of rabbit_password_hashing_sha256, "
        "rabbit_password_hashing_sha512, rabbit_password_hashing_md5",
    ),
    (
        "users",
        {"name": "u", "tags": "", "limits": {"foo": 1}},
        "user 'u': Unrecognised terms [{<<\"foo\">>,1}] in user-limits",
    ),
    ("users", {"name": "u", "tags": None}, "user 'u' has no tags"),
    ("users", {"name": "u", "tags": {}}, "tags of user 'u' should be an array of strings, actually was #{}"),
    ("users", {"name": "u", "tags": "", "limits": None}, "user 'u' has no limits"),
    ("users", {"name": "u", "tags": "", "limits": []}, "limits of user 'u' should be an object, actually was []"),
    ("vhosts", {}, "vhost 2 has no name"),
    ("vhosts", {"name": "v", "metadata": 5}, "metadata of vhost 'v' should be an object, actually was 5"),
    ("vhosts", {"name": "v", "metadata": {"default_queue_type": "x"}}, "vhost 'v': unsupported queue type 'x'"),
    ("vhosts", {"name": "v", "tracing": 1}, "tracing of vhost 'v' should be true or false, actually was 1"),
    ("permissions", {**PERMISSION, "user": "x"}, "permission of user 'x' in vhost '/': User 'x' does not exist"),
    (
        "permissions",
        {**PERMISSION, "vhost": "x"},
        "permission of user 'guest' in vhost 'x': Please create virtual host \"x\" prior to importing definitions",
    ),
    (
        "permissions",
        {"user": "guest", "vhost": "/", "write": "", "read": ""},
        "permission of user 'guest' in vhost '/' has no configure",
    ),
    (
        "permissions",
        {**PERMISSION, "write": "*"},
        "permission of user 'guest' in vhost '/': regular expression '*' is invalid: {\"nothing to repeat\",0}",
    ),
    (
        "topic_permissions",
        {**PERMISSION, "exchange": 5},
        "exchange of topic permission of user 'guest' in vhost '/' should be a string, actually was 5",
    ),
    (
        "exchanges",
        {**EXCHANGE, "type": "x"},
        "exchange 'e' in vhost '/': precondition_failed: unknown exchange type 'x'",
    ),
    (
        "exchanges",
        {**EXCHANGE, "durable": "yes"},
        "durable of exchange 'e' in vhost '/' should be true or false, actually was <<\"yes\">>",
    ),
    (
        "exchanges",
        {**EXCHANGE, "arguments": "x"},
        "exchange 'e' in vhost '/': arguments should be a dictionary, actually was <<\"x\">>",
    ),
    ("global_parameters", {"value": 1}, "global parameter 2 has no name"),
    (
        "policies",
        {**POLICY, "definition": {"foo": 5}},
        'Validation failed\n\n[{<<"foo">>,5}] are not recognised policy settings\n (//p)',
    ),
    ("policies", {"vhost": "/"}, "policy in virtual host '/' has undefined name"),
    (
        "parameters",
        {"vhost": "/", "component": "foo", "name": "x", "value": {}},
        "Validation failed\n\ncomponent foo not found\n (//foo/x)",
    ),
    ("parameters", {"vhost": "/", "name": "x"}, "parameter 'x' in vhost '/' has no component"),
    ("queues", {**QUEUE, "name": None}, "queue 2 in vhost '/' has no name"),
    ("queues", {**QUEUE, "name": "x" * 256}, f"name of queue '{'x' * 256}' in vhost '/' is longer than 255 octets"),
    (
        "queues",
        {"name": "q"},
        "queue 'q': Virtual host does not exist and is not specified in definitions file",
    ),
    (
        "queues",
        {**QUEUE, "vhost": "x"},
        "queue 'q' in vhost 'x': Please create virtual host \"x\" prior to importing definitions",
    ),
    (
        "queues",
        {**QUEUE, "arguments": {"x-message-ttl": "a"}},
        "precondition_failed: invalid arg 'x-message-ttl' for queue 'q' in vhost '/': "
        '"expected integer, got longstr"',
    ),
    ("queues", 5, "queue 2 should be an object, actually was 5"),
    (
        "bindings",
        {**BINDING, "destination_type": "x"},
        "destination_type of binding 'k' of exchange 'e' to x 'q' in vhost '/' is neither queue nor exchange",
    ),
    (
        "bindings",
        {**BINDING, "routing_key": 5},
        "routing_key of binding '5' of exchange 'e' to queue 'q' in vhost '/' should be a string, actually was 5",
    ),
]
GOOD: dict[str, dict[str, Any]] = {
    "users": {"name": "good", "tags": "", "password": "p"},
    "vhosts": {"name": "good"},
    "permissions": PERMISSION,
    "topic_permissions": {**PERMISSION, "exchange": "e"},
    "exchanges": {**EXCHANGE, "name": "good"},
    "global_parameters": {"name": "good", "value": 1},
    "policies": {**POLICY, "name": "good"},
    "parameters": {"vhost": "/", "component": "shovel", "name": "good", "value": {}},
    "queues": {**QUEUE, "name": "good"},
    "bindings": {**BINDING, "source": "good", "destination": "good"},
}


@pytest.mark.parametrize(("section", "item", "text"), REFUSED, ids=lambda value: str(value)[:40])
def test_an_error_names_its_object_and_changes_nothing(broker: Broker, section: str, item: Any, text: str) -> None:
    document = {name: [good] for name, good in GOOD.items()}
    document[section] = [GOOD[section], item]
    assert reason(broker, document) == text


def test_the_same_document_without_its_errors_is_imported(broker: Broker) -> None:
    assert import_(broker, {section: [item] for section, item in GOOD.items()}) == []
    assert {"good"} <= broker.vhosts["/"].queues.keys() & broker.vhosts["/"].exchanges.keys() & broker.users.keys()


@pytest.mark.parametrize("section", GOOD)
def test_a_section_is_an_array_or_nothing(broker: Broker, section: str) -> None:
    assert reason(broker, {section: {"a": 1}}) == f'{section} should be an array, actually was #{{<<"a">> => 1}}'
    assert import_(broker, {section: None}) == import_(broker, {section: []}) == []


@pytest.mark.parametrize("document", [None, [], "x", 5])
def test_a_document_is_an_object(broker: Broker, document: Any) -> None:
    assert reason(broker, document).startswith("definitions should be an object, actually were ")


def test_unknown_sections_and_keys_are_ignored(broker: Broker) -> None:
    assert import_(broker, {"foo": 5, "queues": [{**QUEUE, "foo": 5, "type": "quorum"}]}) == []
    assert broker.vhosts["/"].queues["q"].type == "classic"


def test_queues_beyond_the_limit_are_refused_before_the_first_is_declared(broker: Broker) -> None:
    new_queue(broker.vhosts["/"], "there")
    broker.vhosts["/"].limits.set("max-queues", 2)
    queues = [{**QUEUE, "name": name} for name in ("there", "a", "b", "b")]
    assert reason(broker, {"queues": queues}) == (
        'Adding 2 queue(s) to virtual host "/" would exceed the limit of 2 queue(s).\n\n'
        "This virtual host currently has 1 queue(s) defined.\n\nImport aborted!"
    )
    import_(broker, {"queues": queues[:2]})
    limits = {"vhost": "/", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 3}}
    import_(broker, {"queues": queues, "parameters": [limits]})
    assert len(broker.vhosts["/"].queues) == 3


# Errors that only a declaration shows


def test_objects_declared_before_an_error_stay(broker: Broker) -> None:
    delayed = {**EXCHANGE, "name": "late", "type": "x-delayed-message", "arguments": {"x-delayed-type": "x"}}
    work = Import(broker, {"exchanges": [EXCHANGE, delayed], "queues": [QUEUE]})
    with pytest.raises(DefinitionsError, match="exchange 'late' in vhost '/'"):
        list(work.run())
    assert "e" in broker.vhosts["/"].exchanges
    assert "late" not in broker.vhosts["/"].exchanges
    assert broker.vhosts["/"].queues == {}


def test_an_import_can_be_done_in_portions(broker: Broker) -> None:
    work = Import(broker, {"queues": [{**QUEUE, "name": str(number)} for number in range(5)]})
    run = work.run()
    assert (next(run), next(run), work.steps, len(broker.vhosts["/"].queues)) == (1, 2, 5, 2)


def test_an_import_ends_with_its_vhost(broker: Broker) -> None:
    broker.add_vhost("v")
    steps = importing(broker, {"queues": [{**QUEUE, "vhost": "v", "name": str(number)} for number in range(3)]})
    while not broker.vhosts["v"].queues:
        next(steps)
    broker.delete_vhost("v")
    with pytest.raises(DefinitionsError, match="queue '1' in vhost 'v': Virtual host 'v' does not exist"):
        finished(steps)


# Existing objects stay


def test_existing_objects_stay_as_they_are(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    queue, exchange = new_queue(vhost, "q", arguments={"a": 1}), new_exchange(vhost, "e", "fanout")
    document = {
        "queues": [{**QUEUE, "arguments": {"x-queue-type": "no such"}}],
        "exchanges": [EXCHANGE],
        "bindings": [BINDING, BINDING],
    }
    assert import_(broker, document) == []
    assert (vhost.queues["q"], vhost.exchanges["e"], queue.arguments["a"]) == (queue, exchange, 1)
    assert len(exchange.bindings) == 1


def test_objects_with_reserved_names_are_skipped() -> None:
    broker = new_broker(compat="3.13")
    document = {
        "queues": [{**QUEUE, "name": "amq.gen-x"}],
        "exchanges": [{**EXCHANGE, "name": "amq.mine"}, {**EXCHANGE, "name": ""}],
        "bindings": [{**BINDING, "source": ""}, {**BINDING, "source": "amq.direct", "destination": "amq.gen-x"}],
    }
    assert import_(broker, document) == [
        "Skipping import of an exchange whose name begins with 'amq.', name: amq.mine",
        "exchange '' in vhost '/' is skipped: it is the default exchange",
        "Skipping import of a queue whose name begins with 'amq.', name: amq.gen-x",
        "binding 'k' of exchange 'amq.direct' to queue 'amq.gen-x' in vhost '/' is skipped, "
        "since there is no queue 'amq.gen-x'",
    ]


def test_a_binding_of_a_missing_queue_is_refused(broker: Broker) -> None:
    for source in ("amq.direct", ""):
        assert reason(broker, {"bindings": [{**BINDING, "source": source}]}) == (
            f"binding 'k' of exchange '{source}' to queue 'q' in vhost '/': there is no queue 'q'"
        )
    assert reason(broker, {"queues": [QUEUE], "bindings": [BINDING]}) == (
        "binding 'k' of exchange 'e' to queue 'q' in vhost '/': there is no exchange 'e'"
    )


def test_objects_of_a_new_vhost_are_bound(broker: Broker) -> None:
    # That of the default exchange is there anyway.
    bindings = [{**BINDING, "vhost": "v", "source": source} for source in ("e", "amq.direct", "")]
    document = {
        "vhosts": [{"name": "v"}],
        "exchanges": [{**EXCHANGE, "vhost": "v"}],
        "queues": [{**QUEUE, "vhost": "v"}],
        "bindings": bindings,
    }
    assert import_(broker, document) == []
    assert [found["source"] for found in export(broker, "v")["bindings"]] == ["amq.direct", "e"]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"durable": False}, "is neither durable nor exclusive"),
        ({"arguments": {"x-queue-master-locator": "min-masters"}}, "has the argument x-queue-master-locator"),
    ],
)
def test_a_queue_is_skipped_that_uses_what_is_not_permitted(changes: dict[str, Any], fault: str) -> None:
    """4.3.6 starts without it."""
    document = {"queues": [{**QUEUE, **changes}, {**QUEUE, "name": "good"}]}
    broker = new_broker(compat="4.3")
    assert import_(broker, document) == [f"queue 'q' in vhost '/' is skipped: it {fault}, which is not permitted"]
    assert list(broker.vhosts["/"].queues) == ["good"]
    assert import_(older := new_broker(compat="4.0"), document) == []
    assert list(older.vhosts["/"].queues) == ["q", "good"]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"policies": [{**POLICY, "definition": {"foo": 1}}]}, 'vhost: "/" key: "p"'),
        (
            {"parameters": [{"vhost": "/", "component": "foo", "name": "x", "value": 1}]},
            'vhost: "/" / component: "foo" / key: "x"',
        ),
    ],
)
def test_an_invalid_parameter_is_named_as_by_rabbitmq_4_3(document: Any, place: str) -> None:
    assert reason(new_broker(compat="4.3"), document).endswith(f"\n ({place})")


def test_an_existing_vhost_keeps_its_protection_alone() -> None:
    """Seen in RabbitMQ 4.0.5 and 4.3.6, which ignore a type beside the metadata."""
    broker = new_broker(default_queue_type="stream")
    vhost = broker.add_vhost("v", Metadata("d", ("a",), "quorum", True))
    import_(broker, {"vhosts": [{"name": "v", "default_queue_type": "classic"}]})
    assert vhost.metadata == Metadata("", (), "stream", True)
    import_(broker, {"vhosts": [{"name": "v", "metadata": {"default_queue_type": "classic"}}]})
    assert vhost.metadata == Metadata("", (), "classic", True)


def test_an_existing_vhost_of_3_13_keeps_absent_values() -> None:
    broker = new_broker(compat="3.13")
    vhost = broker.add_vhost("v", Metadata("d", ("a",), "quorum", True))
    import_(broker, {"vhosts": [{"name": "v", "tags": []}]})
    assert vhost.metadata == Metadata("d", (), "quorum", True)
    import_(broker, {"vhosts": [{"name": "v", "default_queue_type": "undefined", "description": "e"}]})
    assert vhost.metadata == Metadata("e", (), None, True)


# Vhosts


def test_the_importing_user_gets_all_permissions_in_a_new_vhost(broker: Broker) -> None:
    broker.add_vhost("old")
    import_(broker, {"vhosts": [{"name": "old"}, {"name": "new"}]}, actor="guest")
    assert broker.users["guest"].permissions.keys() == {"/", "new"}


def test_tracing_is_started_and_stopped(broker: Broker) -> None:
    vhost = broker.vhosts["/"]
    import_(broker, {"vhosts": [{"name": "/", "tracing": True}]})
    trace = vhost.trace
    assert trace is not None
    import_(broker, {"vhosts": [{"name": "/", "tracing": True}, {"name": "other", "tracing": False}]})
    import_(broker, {"vhosts": [{"name": "/"}]})
    assert vhost.trace is trace
    import_(broker, {"vhosts": [{"name": "/", "tracing": False}]})
    assert vhost.trace is None


@pytest.mark.parametrize("told", ["quorum", "rabbit_quorum_queue"])
def test_queues_get_the_default_type_that_comes_with_their_vhost(broker: Broker, told: str) -> None:
    vhost = {"name": "v", "metadata": {"default_queue_type": told, "description": "d", "tags": ["a"]}}
    queue = {**QUEUE, "vhost": "v"}
    import_(broker, {"vhosts": [vhost], "queues": [queue, {**queue, "name": "t", "auto_delete": True}]})
    assert broker.vhosts["v"].metadata == Metadata("d", ("a",), "quorum")
    queues = broker.vhosts["v"].queues
    assert (queues["q"].type, queues["t"].type) == ("quorum", "classic")


def test_an_import_into_a_vhost_changes_no_other(broker: Broker) -> None:
    vhost = broker.add_vhost("v")
    document = {
        "users": [{"name": "u", "tags": ""}],
        "vhosts": [{"name": "w"}],
        "global_parameters": [{"name": "g", "value": 1}],
        "queues": [QUEUE, {"name": "bare"}],
        "policies": [POLICY],
    }
    import_(broker, document, "v")
    assert (set(vhost.queues), len(vhost.policies), vhost.queues["bare"].is_durable) == ({"q", "bare"}, 1, True)
    assert (list(broker.users), list(broker.vhosts), list(broker.global_parameters)) == (["guest"], ["/", "v"], [])
    assert broker.vhosts["/"].queues == {}


def test_importing_into_a_missing_vhost_is_an_error(broker: Broker) -> None:
    with pytest.raises(DoesNotExist, match="Virtual host 'v' does not exist"):
        import_(broker, {}, "v")
