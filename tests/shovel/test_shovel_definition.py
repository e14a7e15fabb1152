from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.shovel.shovel_definition import Uri, parse, parse_uri

GIVEN: dict[str, Any] = {"src-uri": "amqp://", "dest-uri": "amqp://there", "src-queue": "q", "dest-queue": "r"}


def test_missing_keys_have_rabbitmqs_defaults() -> None:
    definition = parse("s", GIVEN)
    assert definition.ack_mode == "on-confirm"
    assert definition.prefetch == 1000
    assert definition.reconnect_delay_s == 1
    assert definition.delete_after == "never"


def test_null_is_the_same_as_a_missing_key() -> None:
    assert parse("s", {**GIVEN, "dest-exchange": None, "ack-mode": None}) == parse("s", GIVEN)


def test_old_names_of_keys_are_accepted() -> None:
    old = parse("s", {**GIVEN, "prefetch-count": 250, "delete-after": "queue-length", "add-forward-headers": True})
    assert parse("s", {**GIVEN, "src-prefetch-count": 65546}).prefetch == 10
    assert (old.prefetch, old.delete_after, old.adds_forward_headers) == (250, "queue-length", True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"src-queue": None}, "Must specify 'src-exchange' or 'src-queue'"),
        ({"src-exchange": "x"}, "Cannot specify 'src-exchange' and 'src-queue'"),
        ({"dest-exchange": "x"}, "Cannot specify 'dest-exchange' and 'dest-queue'"),
        ({"ack-mode": 5}, "ack-mode should be binary, actually was 5"),
        ({"reconnect-delay": -1}, "reconnect-delay should be a non-negative number, actually was -1"),
        ({"dest-uri": 5}, "dest-uri should be list, actually was 5"),
        ({"dest-protocol": 5}, "dest-protocol should be binary, actually was 5"),
        ({"dest-publish-properties": 5}, "dest-publish-properties not a list 5"),
        ({"ack-mode": "no-ack", "src-delete-after": 5}, "Cannot specify 'no-ack' and numerical 'delete-after'"),
        ({"src-uri": None}, 'Key "src-uri" not found in s'),
        ({"src-uri": "http://x"}, '"http://x" not a valid URI: {{unexpected_uri_scheme,"http"},"http://x"}'),
        ({"src-uri": ["amqp://", 5]}, "src-uri should be binary"),
        ({"src-uri": []}, "src-uri should be a URI"),
        ({"dest-uri": "amqp://u:secret@[x"}, '"amqp://[x" not a valid URI'),
        (
            {"ack-mode": "sometimes"},
            'ack-mode should be one of [<<"no-ack">>,<<"on-publish">>,<<"on-confirm">>], actually was <<"sometimes">>',
        ),
        ({"src-delete-after": "soon"}, "src-delete-after should be a number"),
        ({"src-prefetch-count": "x"}, "src-prefetch-count should be a number"),
        ({"reconnect-delay": True}, "reconnect-delay should be a number, actually was true"),
        ({"dest-add-forward-headers": 1}, "dest-add-forward-headers should be boolean"),
        (
            {"dest-publish-properties": {"colour": "red"}},
            'Unrecognised terms [{<<"colour">>,<<"red">>}] in dest-publish-properties',
        ),
        ({"dest-publish-properties": {"app_id": 5}}, "app_id should be binary, actually was 5"),
        ({"dest-protocol": "amqp10", "dest-address": "a"}, "AMQP 1.0 is not spoken here"),
        (
            {"src-protocol": "local", "src-prefetch-count": 5, "prefetch-count": 5},
            'Unrecognised terms [{<<"prefetch-count">>,5},{<<"src-prefetch-count">>,5}] in s',
        ),
        (
            {"dest-protocol": "local", "dest-publish-properties": {}},
            'Unrecognised terms [{<<"dest-publish-properties">>,#{}}] in s',
        ),
        ({"dest-protocol": "local", "dest-uri": None}, 'Key "dest-uri" not found in s'),
        (
            {"src-protocol": "x"},
            'src-protocol should be one of [<<"amqp091">>,<<"local">>,<<"amqp10">>], actually was <<"x">>',
        ),
        ({"src-predeclared": "x"}, "src-predeclared should be boolean"),
        ({"src-qeue": "q"}, 'Unrecognised terms [{<<"src-qeue">>,<<"q">>}] in s'),
        ({"src-delete-after": -1}, "src-delete-after should be a number greater than or equal to 0"),
        ({"src-queue": "ü" * 128}, "src-queue must not be longer than 255 octets"),
        ({"dest-exchange-key": "k" * 256}, "dest-exchange-key must not be longer than 255 octets"),
        ({"dest-publish-properties": {"app_id": "x" * 256}}, "app_id must not be longer than"),
        ({"dest-publish-properties": {"priority": 256}}, "priority must not be greater"),
        ({"src-uri": "amqp:///" + "v" * 256}, "the vhost of a URI must not be longer than 255 octets"),
        ({"src-uri": "amqp://h?heartbeat=70000"}, "70000 is not a valid heartbeat"),
        ({"src-uri": "amqp://h?heartbeat=²"}, "² is not a valid heartbeat"),
        ({"src-uri": "amqp://h:" + "1" * 5000}, "not a valid URI"),
        ({"src-uri": "amqp://u:sec@secret@h"}, '"amqp://h" not a valid URI'),
        ({"src-uri": "amqp://u:sec/secret@h"}, '"amqp://h" not a valid URI'),
        ({"src-uri": "x://h?password=secret&a=b"}, '"x://h?password=***&a=b" not a valid URI'),
    ],
)
def test_an_invalid_definition_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        parse("s", {**GIVEN, **change})
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", [None, [], "x", 5])
def test_a_definition_must_be_an_object(value: Any) -> None:
    with pytest.raises(InvalidParameter):
        parse("s", value)


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("amqp://", Uri("amqp", "", 5672, "guest", "guest", None, {})),
        ("amqp:///v", Uri("amqp", "", 5672, "guest", "guest", "v", {})),
        ("amqp://h", Uri("amqp", "h", 5672, "guest", "guest", None, {})),
        ("amqp://h/", Uri("amqp", "h", 5672, "guest", "guest", "", {})),
        ("amqp://h/%2f", Uri("amqp", "h", 5672, "guest", "guest", "/", {})),
        ("amqps://u:p%40@h:1/v?heartbeat=5", Uri("amqps", "h", 1, "u", "p@", "v", {"heartbeat": "5"})),
        ("amqp://[::1]:7", Uri("amqp", "[::1]", 7, "guest", "guest", None, {})),
    ],
)
def test_a_uri_is_parsed(text: str, uri: Uri) -> None:
    assert parse_uri(text) == uri


def test_a_shown_uri_has_no_password() -> None:
    uri = parse_uri("amqps://user:secret@h:99/a%2Fb?password=secret")
    assert str(uri) == "amqps://h:99/a%2Fb"
    assert "secret" not in repr(uri) + str(uri) or "query" in repr(uri)


@pytest.mark.parametrize("text", ["", "amqp:/", "amqp//h", "amqp://h:99999", "amqp://h:x", "amqp://h/a/b", "x://h"])
def test_an_invalid_uri_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="not a valid URI"):
        parse_uri(text)


def test_a_local_end_is_this_broker_whatever_its_uri_is() -> None:
    definition = parse("s", {**GIVEN, "src-protocol": "local", "src-uri": "amqp://other:7/v"})
    (uri,) = definition.source.uris
    assert (uri.is_local, uri.vhost, definition.source.shown_uri) == (True, "v", "")
    assert definition.destination.protocol == "amqp091"
