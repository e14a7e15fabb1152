from __future__ import annotations

import re
from pathlib import Path

import pytest

from compat.certificates import Issuer
from pyspark_amqp.address import Tls
from pyspark_amqp.errors import OptionError
from pyspark_amqp.format_options import SourceOptions, parse_offsets, read_sink, read_source


def streaming(**options: str) -> SourceOptions:
    return read_source({"queue": "q", **{name.replace("_", "."): text for name, text in options.items()}}, True)


def test_only_the_queue_is_required() -> None:
    options = read_source({"queue": "orders"}, is_streaming=True)
    assert (options.queues, options.is_stream, str(options.address)) == (("orders",), False, "localhost:5672")
    assert options.offsets_per_trigger_max == 32_000


def test_streaming_starts_at_the_end_and_a_batch_at_the_beginning() -> None:
    options = {"queue": "s", "queueType": "stream"}
    assert read_source(options, is_streaming=True).starting_offsets == "latest"
    assert read_source(options, is_streaming=False).starting_offsets == "earliest"
    assert read_source(options, is_streaming=True).offsets_per_trigger_max is None


def test_names_are_case_insensitive() -> None:
    assert read_source({"QUEUE": "q", "queuetype": "Stream"}, is_streaming=True).is_stream


def test_several_streams_are_read_in_the_order_of_their_names() -> None:
    assert streaming(queueType="stream", queue="b, a").queues == ("a", "b")
    assert streaming(queue="b,a").queues == ("b,a",)


def test_offsets_are_words_or_numbers_by_queue() -> None:
    assert parse_offsets(" Earliest ", ("earliest",), 0) == "earliest"
    assert parse_offsets('{"b": 2, "a": 0}', (), 0) == {"a": 0, "b": 2}


def test_a_password_may_come_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("from the file\n", "utf-8")
    monkeypatch.setenv("BROKER_PASSWORD", "from the environment")
    address = streaming(host="h", port="1", virtualHost="v", username="u", passwordFile=str(secret)).address
    assert (str(address), address.virtual_host, address.username) == ("h:1", "v", "u")
    assert address.password == "from the file"
    assert streaming(url="amqp://u@h", passwordEnv="BROKER_PASSWORD").address.password == "from the environment"
    secret.write_text("changed\n", "utf-8")
    assert address.current_password() == "changed"
    # As on an executor that does not have the file.
    secret.unlink()
    assert address.current_password() == "from the file"


def test_a_certificate_may_name_the_user(tmp_path: Path) -> None:
    served = Issuer(tmp_path).client("bob")
    files = {"tls.certFile": str(served.certificate), "tls.keyFile": str(served.key)}
    assert streaming(url="amqps://h/?auth_mechanism=EXTERNAL", **files).address.mechanism == "external"
    assert streaming(host="h", tls="true", authMechanism="external", **files).address.mechanism == "external"
    with pytest.raises(OptionError, match="option 'password': cannot be given beside authMechanism=external"):
        streaming(host="h", tls="true", authMechanism="external", password="x", **files)


def test_there_may_be_several_hosts() -> None:
    assert str(streaming(host="a,b:1", port="2").address) == "a:2, b:1"


@pytest.mark.parametrize(
    ("text", "duration_s"), [("0", 0), ("30s", 30), ("5 min", 300), ("5m", 300), ("250ms", 0.25), ("1H", 3600)]
)
def test_the_time_for_reconnections_has_a_unit(text: str, duration_s: float) -> None:
    assert streaming(reconnectTimeout=text).address.reconnect_timeout_s == duration_s
    assert streaming().address.reconnect_timeout_s == 300


def test_options_of_tls_precede_parameters_of_the_url(tmp_path: Path) -> None:
    address = streaming(url="amqps://h?verify=verify_none&server_name_indication=b", tls_verify="true").address
    assert address.tls == Tls(server_name="b")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"queue": ""}, "queue"),
        ({"reconnectTimeout": "300"}, "reconnectTimeout"),
        ({"reconnectTimeout": "-1s"}, "reconnectTimeout"),
        ({"host": "a:b"}, "host"),
        ({"host": "a,,b"}, "host"),
        ({"url": "amqp://user:secret@a,"}, "url"),
        ({"queue": "q" * 256}, "queue"),
        ({"queue": "a," + "é" * 128, "queueType": "stream"}, "queue"),
        ({"virtualHost": "v" * 256}, "virtualHost"),
        ({"url": "amqp://h/" + "v" * 256}, "url"),
        ({"quue": "q"}, "quue"),
        ({"queue": "a,,b", "queueType": "stream"}, "queue"),
        ({"queue": "a,a", "queueType": "stream"}, "queue"),
        ({"queueType": "lazy"}, "queueType"),
        ({"startingOffsets": "latest"}, "startingOffsets"),
        ({"queueType": "stream", "startingOffsets": "first"}, "startingOffsets"),
        ({"queueType": "stream", "startingOffsets": '{"other": 1}'}, "startingOffsets"),
        ({"queueType": "stream", "startingOffsets": '{"q": -3}'}, "startingOffsets"),
        ({"queueType": "stream", "startingTimestamp": '{"other": 1}'}, "startingTimestamp"),
        ({"queueType": "stream", "startingTimestamp": "yesterday"}, "startingTimestamp"),
        ({"queueType": "stream", "startingTimestamp": "-1"}, "startingTimestamp"),
        ({"queueType": "stream", "startingOffsets": '{"q": true}'}, "startingOffsets"),
        ({"queueType": "stream", "startingOffsets": "earliest", "startingTimestamp": "1"}, "startingTimestamp"),
        ({"queueType": "stream", "startingTimestamp": "1700000000000000"}, "startingTimestamp"),
        ({"queueType": "stream", "endingOffsets": "latest"}, "endingOffsets"),
        ({"queueType": "stream", "maxBytesPerTrigger": "1"}, "maxBytesPerTrigger"),
        ({"queueType": "stream", "idleTimeout": "1m"}, "idleTimeout"),
        ({"idleTimeout": "soon"}, "idleTimeout"),
        ({"minPartitions": "2"}, "minPartitions"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger"),
        ({"maxOffsetsPerTrigger": "1e3"}, "maxOffsetsPerTrigger"),
        ({"maxOffsetsPerTrigger": "²"}, "maxOffsetsPerTrigger"),
        ({"prefetch": "65536"}, "prefetch"),
        ({"includeHeaders": "yes"}, "includeHeaders"),
        ({"url": "amqp://h", "port": "1"}, "port"),
        ({"password": "x", "passwordEnv": "Y"}, "passwordEnv"),
        ({"passwordEnv": "NO_SUCH_VARIABLE_HERE"}, "passwordEnv"),
        ({"passwordFile": "/no/such/file"}, "passwordFile"),
        ({"tls.caFile": "x"}, "tls.caFile"),
        ({"tls": "true", "tls.keyFile": "x"}, "tls.keyFile"),
        ({"authMechanism": "external", "tls": "true"}, "authMechanism"),
        ({"authMechanism": "amqplain"}, "authMechanism"),
        ({"url": "amqp://h/?auth_mechanism=external"}, "authMechanism"),
    ],
)
def test_an_invalid_option_is_named(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=f"option '{named}'"):
        read_source({"queue": "q", **options}, is_streaming=True)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("quue", "did you mean queue?"),
        ("MAXOFFSETPERTRIGGER", "did you mean maxOffsetsPerTrigger?"),
        ("startingTimestmp", "did you mean startingTimestamp?"),
        ("kafka.bootstrap.servers", "use url"),
        ("subscribe", "use queue"),
        ("endingOffsetsByTimestamp", "endingTimestamp is for other reads or writes"),
        ("color", "known are url, host, port"),
    ],
)
def test_an_unknown_option_names_the_one_that_is_meant(name: str, hint: str) -> None:
    with pytest.raises(OptionError, match=f"option '{re.escape(name)}': unknown; {re.escape(hint)}"):
        read_source({"queue": "q", name: "x"}, is_streaming=True)


@pytest.mark.parametrize(
    "given",
    [{"endingOffsets": '{"q": -2}'}, {"endingTimestamp": "x"}, {"endingOffsets": "latest", "endingTimestamp": "1"}],
)
def test_an_invalid_end_of_a_batch_is_named(given: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=f"option '{list(given)[-1]}'"):
        read_source({"queue": "q", "queueType": "stream", **given}, is_streaming=False)


def test_a_batch_refuses_options_of_triggers() -> None:
    with pytest.raises(OptionError, match="option 'maxOffsetsPerTrigger'"):
        read_source({"queue": "q", "maxOffsetsPerTrigger": "1"}, is_streaming=False)


def test_sparks_own_options_are_ignored() -> None:
    assert read_source({"queue": "q", "path": "x", "checkpointLocation": "y"}, is_streaming=True).queues == ("q",)


def test_the_defaults_of_a_sink_lose_nothing() -> None:
    options = read_sink({"routingKey": "q"})
    assert (options.exchange, options.routing_key, options.mandatory, options.delivery_mode) == (None, "q", True, 2)
    assert (options.in_flight_max, options.confirm_timeout_ms, options.message_id) == (1000, 30_000, "auto")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"queue": "q"}, "queue"),
        ({"exchange": "x" * 256}, "exchange"),
        ({"deliveryMode": "3"}, "deliveryMode"),
        ({"messageId": "uuid"}, "messageId"),
        ({"maxInFlight": "0"}, "maxInFlight"),
    ],
)
def test_an_invalid_option_of_a_sink_is_named(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=f"option '{named}'"):
        read_sink(options)
