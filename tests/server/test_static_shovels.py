"""Static shovels of advanced.config are read, and run on the engine of dynamic ones."""

from __future__ import annotations

import pytest

from amqp_broker.server.server import Server
from amqp_broker.server.static_shovels import configured, read
from amqp_broker.settings.settings import Settings, SettingsError
from amqp_broker.settings.sources.erlang_settings import from_config
from amqp_broker.shovel.shovel_definition import Definition
from tests.client import Client
from tests.running import RunningServer
from tests.server.shovels import depth

SOURCE = """{source, [{protocol, amqp091}, {uris, ["amqp://"]},
  {declarations, [{'exchange.declare', [{exchange, <<"piers">>}, {type, <<"fanout">>}, durable]},
                  {'queue.declare', [{queue, <<"boats">>}, durable, {arguments, [{<<"x-max-length">>, long, 9}]}]},
                  {'queue.bind', [{exchange, <<"piers">>}, {queue, <<"boats">>}]}]},
  {queue, <<"boats">>}, {prefetch_count, 10}]}"""
DESTINATION = """{destination, [{protocol, amqp091}, {uris, ["amqp://", "amqp://b"]},
  {declarations, [{'queue.declare', [{queue, <<"tides">>}, durable]}]},
  {publish_properties, [{delivery_mode, 2}, {headers, [{<<"a">>, signedint, 1}, {<<"b">>, bool, true}]}]},
  {publish_fields, [{exchange, <<"">>}, {routing_key, <<"tides">>}]},
  {add_forward_headers, true}]}"""
OLD = """{sources, [{broker, "amqp://a"}, {declarations, ['queue.declare']}]},
  {destinations, [{brokers, ["amqp://b", "amqp://c"]}]},
  {queue, <<>>}, {prefetch_count, 3}, {publish_fields, [{exchange, <<"x">>}]}, {reconnect_delay, 2.5}"""


def term(*parts: str, more: str = "") -> str:
    """Return the setting for one shovel of these parts, and more."""
    text = f"[{{rabbitmq_shovel, [{{shovels, [{{hand_over, [{', '.join(parts)}]}}{more}]}}]}}]."
    [entry], wrong = from_config(text, "advanced.config")
    assert wrong == []
    return entry.value


def shovel(*parts: str) -> Definition:
    return read(term(*parts))["hand_over"]


def test_a_shovel_has_a_source_and_a_destination() -> None:
    found = shovel(SOURCE, DESTINATION, "{ack_mode, on_publish}")
    assert (found.source.queue, found.prefetch, found.ack_mode, found.reconnect_delay_s) == (
        "boats",
        10,
        "on-publish",
        5,
    )
    assert [str(uri) for uri in found.destination.uris] == ["amqp://", "amqp://b"]
    assert (found.destination.exchange, found.destination.routing_key) == ("", "tides")
    assert found.publish_properties == {"delivery_mode": 2, "headers": {"a": 1, "b": True}}
    assert (found.adds_forward_headers, found.adds_timestamp_header) == (True, False)


def test_a_shovel_acknowledges_nothing_unless_it_says_so_or_has_the_old_form() -> None:
    assert shovel(SOURCE, DESTINATION).ack_mode == "no-ack"
    assert shovel(OLD).ack_mode == "on-confirm"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("3", 3),
        ("0", 0),
        ("'queue-length'", "queue-length"),
        ("never", "never"),
        ("sometimes", "never"),
        ("true", "never"),
    ],
)
def test_a_source_has_a_number_of_messages_or_no_limit(value: str, found: int | str) -> None:
    source = SOURCE.replace("{prefetch_count, 10}", f"{{delete_after, {value}}}")
    assert shovel(source, DESTINATION).delete_after == found


def test_a_shovel_of_the_old_form_has_its_number_of_messages_beside_source_and_destination() -> None:
    assert shovel(OLD, "{delete_after, 3}").delete_after == 3
    assert shovel(SOURCE, DESTINATION, "{delete_after, 3}").delete_after == "never"


def test_declarations_are_methods() -> None:
    static = shovel(SOURCE, DESTINATION).static
    assert static is not None
    exchange, queue, bind = static.at_source
    assert (exchange.name, dict(exchange)["exchange_type"], dict(exchange)["durable"]) == (
        "Exchange.Declare",
        "fanout",
        True,
    )
    assert (dict(queue)["queue"], dict(queue)["arguments"], dict(queue)["exclusive"]) == (
        "boats",
        {"x-max-length": 9},
        False,
    )
    assert (bind.name, dict(bind)["routing_key"]) == ("Queue.Bind", "")
    assert [method.name for method in static.at_destination] == ["Queue.Declare"]


def test_a_shovel_of_the_old_form_has_sources_and_destinations() -> None:
    found = shovel(OLD)
    assert [str(uri) for uri in (*found.source.uris, *found.destination.uris)] == ["amqp://a", "amqp://b", "amqp://c"]
    assert (found.source.queue, found.prefetch, found.destination.exchange) == ("", 3, "x")
    assert found.reconnect_delay_s == 2.5


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ((SOURCE,), "it has no destination"),
        ((OLD.partition("{destinations")[0] + "{queue, <<>>}",), "it has no destinations"),
        ((SOURCE, DESTINATION, "{ack_mode, sometimes}"), "ack_mode is 'sometimes'"),
        ((SOURCE.replace("durable]", "{wrong, 1}]"), DESTINATION), "'exchange.declare' has no field wrong"),
        ((SOURCE.replace("queue.bind", "queue.nonsense"), DESTINATION), "'queue.nonsense' is not a method"),
        ((SOURCE, DESTINATION.replace("{routing_key", "{wrong")), "publish_fields has wrong"),
        ((SOURCE, DESTINATION.replace("{delivery_mode", "{wrong")), "publish_properties has wrong"),
        ((SOURCE.replace("amqp091", "amqp11"), DESTINATION), "its protocol is 'amqp11'"),
        ((SOURCE.replace("prefetch_count, 10", "prefetch_count, -2"), DESTINATION), "prefetch_count is '-2'"),
        ((SOURCE.replace('{queue, <<"boats">>}, {pre', "{pre"), DESTINATION), "the source has no queue"),
        ((SOURCE.replace("long, 9", "wide, 9"), DESTINATION), "'wide' is not a type"),
        ((SOURCE, DESTINATION.replace("delivery_mode, 2", "app_id, 2")), "app_id is '2'"),
        ((SOURCE, DESTINATION.replace('routing_key, <<"tides">>', "routing_key, 2")), "routing_key is '2'"),
    ],
)
def test_an_invalid_shovel_stops_the_start_as_in_rabbitmq(parts: tuple[str, ...], error: str) -> None:
    with pytest.raises(SettingsError, match=f"^the static shovel 'hand_over' is invalid: {error}"):
        read(term(*parts))


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ("{3, signedint, 1}", "a table cannot be sent"),
        ('{<<"h">>, float, 1.0e300}', "a table cannot be sent"),
        ('{<<"h">>, array, [1]}', "an array has '1'"),
        ('{<<"h">>, signedint, one}', "invalid literal"),
    ],
)
def test_a_header_that_no_frame_can_have_stops_the_start(headers: str, error: str) -> None:
    with pytest.raises(SettingsError, match=f"^the static shovel 'hand_over' is invalid: {error}"):
        shovel(SOURCE, DESTINATION.replace('{<<"a">>, signedint, 1}', headers))


@pytest.mark.parametrize(
    ("kind", "value", "sent"),
    [
        ("signedint", 2**32 + 7, 7),
        ("signedint", 2**31, -(2**31)),
        ("byte", 300, 44),
        ("byte", 200, -56),
        ("unsignedbyte", -1, 255),
        ("timestamp", 2**64 + 1, 1),
    ],
)
def test_an_integer_that_is_too_large_is_sent_by_its_last_bits(kind: str, value: int, sent: int) -> None:
    found = shovel(SOURCE, DESTINATION.replace("signedint, 1", f"{kind}, {value}").replace("mode, 2", "mode, 258"))
    assert found.publish_properties == {"delivery_mode": 2, "headers": {"a": sent, "b": True}}
    assert shovel(SOURCE.replace("count, 10", "count, 65546"), DESTINATION).prefetch == 10


def test_two_shovels_of_one_name_stop_the_start() -> None:
    with pytest.raises(SettingsError, match="there are two static shovels 'hand_over'"):
        read(term(SOURCE, DESTINATION, more=f", {{hand_over, [{SOURCE}, {DESTINATION}]}}"))


def test_a_text_other_than_json_is_refused() -> None:
    with pytest.raises(SettingsError, match="the static shovels are not JSON"):
        read("[{")


@pytest.mark.parametrize(
    "part", ["{nonsense, 1}", "{reconnect_delay, -1}", "{delete_after, never}"], ids=["key", "delay", "delete_after"]
)
def test_rabbitmq_starts_in_spite_of_other_mistakes(part: str) -> None:
    assert shovel(SOURCE, DESTINATION, part).source.queue == "boats"


def test_a_shovel_of_another_protocol_does_not_run() -> None:
    assert read(term(SOURCE.replace("amqp091", "amqp10"), DESTINATION)) == {}


@pytest.mark.parametrize(("plugins", "count"), [("", 1), ("rabbitmq_shovel_management", 1), ("rabbitmq_management", 0)])
def test_the_plugin_starts_the_shovels(plugins: str, count: int) -> None:
    assert len(configured(Settings(static_shovels=term(SOURCE, DESTINATION), plugins=plugins))) == count


def test_a_static_shovel_declares_and_moves_messages() -> None:
    with RunningServer(static_shovels=term(SOURCE, DESTINATION)) as here:
        here.until(lambda server: depth(server, "tides") == 0)
        with Client(here.port).open() as client:
            client.publish("boats", b"m")
            here.until(lambda server: depth(server, "tides") == 1)
        [one] = here.ask(lambda server: server.node.shovels())
        assert (one.name, one.vhost, one.state, one.details["src_queue"]) == ("hand_over", None, "running", "boats")


LIMITED = SOURCE.replace("{prefetch_count, 10}", "{delete_after, 2}")


def is_waiting(server: Server) -> bool:
    """Return whether the only shovel is done, and starts again after its delay."""
    shovel = next(iter(server.shovels))
    return shovel.next_tick_ms is not None and shovel.next_tick_ms > server.clock.real_now() + 1000


def test_a_static_shovel_starts_again_after_its_number_of_messages_at_once_and_then_after_the_delay() -> None:
    setting = term(LIMITED, DESTINATION, "{ack_mode, on_confirm}, {reconnect_delay, 100}")
    with RunningServer(static_shovels=setting) as here, Client(here.port).open() as client:
        here.until(lambda server: next(iter(server.shovels)).state == "running")
        for _ in range(5):
            client.publish("boats", b"m")
        here.until(lambda server: (depth(server, "boats"), depth(server, "tides")) == (1, 4))
        here.until(lambda server: next(iter(server.shovels)).reason == "autodelete")
        here.live_through(100_000)
        here.until(lambda server: depth(server, "tides") == 5)


def test_a_static_shovel_moves_what_its_queue_has_at_each_start() -> None:
    source = LIMITED.replace("{delete_after, 2}", "{delete_after, 'queue-length'}")
    setting = term(source, DESTINATION, "{ack_mode, on_confirm}, {reconnect_delay, 100}")
    with RunningServer(static_shovels=setting) as here, Client(here.port).open() as client:
        here.until(is_waiting)
        for _ in range(3):
            client.publish("boats", b"m")
        client.sync()
        here.live_through(200_000)
        here.until(lambda server: (depth(server, "boats"), depth(server, "tides")) == (0, 3))
        here.until(is_waiting)


def test_a_static_shovel_without_a_delay_ends_after_its_number_of_messages() -> None:
    setting = term(LIMITED, DESTINATION, "{ack_mode, on_confirm}, {reconnect_delay, 0}")
    with RunningServer(static_shovels=setting) as here, Client(here.port).open() as client:
        here.until(lambda server: next(iter(server.shovels)).state == "running")
        for _ in range(5):
            client.publish("boats", b"m")
        client.sync()
        here.until(lambda server: next(iter(server.shovels)).reason == "autodelete")
        assert here.ask(lambda server: (depth(server, "boats"), depth(server, "tides"))) == (3, 2)
        assert here.ask(lambda server: [one.state for one in server.node.shovels()]) == ["terminated"]


def test_a_static_shovel_outlives_its_destination() -> None:
    with RunningServer() as there:
        port = there.port
    destination = DESTINATION.replace('"amqp://", "amqp://b"', f'"amqp://127.0.0.1:{port}"')
    with RunningServer(static_shovels=term(SOURCE, destination, "{reconnect_delay, 0.01}")) as here:
        here.until(lambda server: "cannot connect" in next(iter(server.shovels)).reason)
        with RunningServer(port=port) as there:
            here.until(lambda server: next(iter(server.shovels)).state == "running")
            assert there.ask(lambda server: depth(server, "tides")) == 0


def test_a_static_shovel_without_a_valid_uri_is_terminated() -> None:
    with RunningServer(static_shovels=term(SOURCE.replace("amqp://", "http://x"), DESTINATION)) as here:
        here.until(lambda server: [one.reason for one in server.shovels] == ["an end has no valid URI"])
