"""The options of the format: an unknown name or an invalid value is an error before any job runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, TypeVar

from pyspark_amqp.address import (
    MECHANISMS,
    PORT,
    TLS_PORT,
    Address,
    PasswordSource,
    Tls,
    from_url,
    read_hosts,
)
from pyspark_amqp.content_header import TIMESTAMP_S_MAX
from pyspark_amqp.errors import OptionError
from pyspark_amqp.offsets import EARLIEST, LATEST, Offsets

P = TypeVar("P")
T = TypeVar("T")

CONNECTION: Final = (
    *("url", "host", "port", "virtualHost", "username", "password", "passwordFile", "passwordEnv"),
    *("authMechanism", "tls", "tls.caFile", "tls.certFile", "tls.keyFile", "tls.verify", "reconnectTimeout"),
)
SOURCE: Final = (
    *("queue", "queueType", "includeHeaders", "includeProperties", "millisecondTimestamps"),
    *("prefetch", "pollTimeoutMs"),
    *("startingOffsets", "startingTimestamp", "maxOffsetsPerTrigger"),
    *("minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "tailProbeMs"),
)
STREAMING: Final = (*SOURCE, "maxBytesPerTrigger", "numReaders", "checkpointLocation", "idleTimeout")
BATCH: Final = (*SOURCE, "endingOffsets", "endingTimestamp")
SINK: Final = (
    *("exchange", "routingKey", "mandatory", "confirmTimeoutMs", "maxInFlight", "deliveryMode"),
    *("messageId", "ignoreUnknownColumns", "millisecondTimestamps", "nullBody"),
)
# Options of streams only.
STREAM_ONLY: Final = (
    *("startingOffsets", "startingTimestamp", "endingOffsets", "endingTimestamp"),
    *("minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "tailProbeMs"),
)
CLASSIC_ONLY: Final = ("maxBytesPerTrigger", "numReaders", "idleTimeout")
# Spark's own options are ignored.
SPARKS: Final = ("path", "checkpointlocation", "queryname")

# Options of Spark's sources and sinks for Kafka and Pulsar.
OTHER_NAMES: Final = {
    "kafka.bootstrap.servers": "url",
    "service.url": "url",
    "subscribe": "queue",
    "topic": "queue",
    "topics": "queue",
    "startingoffsetsbytimestamp": "startingTimestamp",
    "endingoffsetsbytimestamp": "endingTimestamp",
    "endingtime": "endingTimestamp",
    "startingtime": "startingTimestamp",
}

UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
# Octets of a name in AMQP.
SHORT_MAX: Final = 255
MEGABYTE: Final = 1024 * 1024
# AMQP's limit.
PREFETCH_MAX: Final = 65_535
# Deliveries of a queue per batch: each batch costs Spark a fixed time, and the prefetch of two fits into 16 bits.
QUEUE_OFFSETS_MAX: Final = 32_000
# Well below RabbitMQ's consumer timeout, which is 30 minutes.
IDLE_TIMEOUT_S: Final = 300.0


@dataclass(frozen=True)
class SourceOptions:
    """The options of a reader; a limit of None means no limit."""

    address: Address
    queues: tuple[str, ...]
    is_stream: bool
    allows_ms: bool
    starting_offsets: str | Offsets
    # By queue, in milliseconds since 1970; None for the offsets.
    starting_times_ms: dict[str, int] | None
    ending_offsets: str | Offsets
    ending_times_ms: dict[str, int] | None
    offsets_per_trigger_max: int | None
    bytes_per_trigger_max: int
    partitions_min: int
    records_per_partition_max: int | None
    fail_on_data_loss: bool
    prefetch: int
    poll_timeout_ms: int
    tail_probe_ms: int
    reader_count: int
    checkpoint_location: str
    idle_timeout_s: float


@dataclass(frozen=True)
class SinkOptions:
    """The options of a writer; where `exchange` or `routing_key` is None, the column is used."""

    address: Address
    exchange: str | None
    routing_key: str | None
    mandatory: bool
    confirm_timeout_ms: int
    in_flight_max: int
    delivery_mode: int
    message_id: str
    ignore_unknown_columns: bool
    writes_ms: bool
    # A NULL is published as an empty body; otherwise it is an error.
    takes_null_body: bool = False


class Given:
    """The user's options, with case-insensitive names."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...]) -> None:
        """Raise OptionError for an unknown option."""
        self.texts = {name.lower(): text for name, text in options.items()}
        names = {name.lower(): name for name in known}
        for name, text in options.items():
            if name.lower() not in names and name.lower() not in SPARKS:
                raise OptionError(name, f"unknown; {_known(name, known)}")
            if text is None:
                raise OptionError(name, "has no value")

    def __contains__(self, name: str) -> bool:
        return name.lower() in self.texts

    def text(self, name: str, default: str = "") -> str:
        return self.texts.get(name.lower(), default)

    def read(self, name: str, parse: Callable[[str], P], default: T) -> P | T:
        """Return the parsed value. Raise OptionError with the text of a ValueError from `parse`."""
        if name not in self:
            return default
        try:
            return parse(self.text(name))
        except ValueError as error:
            raise OptionError(name, str(error)) from None

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        value = self.text(name, default).lower()
        if value not in choices:
            raise OptionError(name, f"must be {' or '.join(choices)}, not '{self.text(name)}'")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        return self.choice(name, str(default), ("true", "false")) == "true"

    def number(self, name: str, default: T, lowest: int, highest: int = (1 << 63) - 1) -> int | T:
        def parse(text: str) -> int:
            if not text.strip().isascii() or not text.strip().isdigit():
                raise ValueError(f"must be a whole number of at least {lowest}, not '{text}'")
            if not lowest <= int(text) <= highest:
                raise ValueError(f"must be from {lowest} to {highest}, not {text}")
            return int(text)

        return self.read(name, parse, default)


def read_schema(options: Mapping[str, str]) -> tuple[bool, str]:
    """Return whether a reader has columns of properties, and its headers: false, true or typed. Raise OptionError."""
    # Spark does not say here whether it is for a batch or a stream.
    given = Given(options, (*CONNECTION, *dict.fromkeys(BATCH + STREAMING)))
    headers = given.choice("includeHeaders", "false", ("false", "true", "typed"))
    return given.boolean("includeProperties", True), headers


def _known(name: str, known: tuple[str, ...]) -> str:
    """Return the option that an unknown name may mean, or all options."""
    if other := OTHER_NAMES.get(name.lower()):
        return f"use {other}" if other in known else f"{other} is for other reads or writes"
    names = {one.lower(): one for one in known}
    closest = get_close_matches(name.lower(), names, n=1, cutoff=0.75)
    return f"did you mean {names[closest[0]]}?" if closest else f"known are {', '.join(known)}"


def parse_offsets(text: str, words: tuple[str, ...], lowest: int) -> str | Offsets:
    """Parse one of the words, or {"queue": offset, …} with offsets from `lowest` on. Raise ValueError."""
    if text.strip().lower() in words:
        return text.strip().lower()
    return _by_queue(text, f'{" or ".join(words)} or JSON as {{"queue": 12}}', lowest, (1 << 63) - 1)


def _parse_times_ms(text: str, queues: tuple[str, ...]) -> dict[str, int]:
    """Parse milliseconds since 1970, for all queues or as {"queue": time, …}. Raise ValueError."""
    wanted = "milliseconds since 1970, below the year 10000, or JSON of them by queue"
    if text.strip().isascii() and text.strip().isdigit():
        text = json.dumps(dict.fromkeys(queues, int(text)))
    return _by_queue(text, wanted, 0, TIMESTAMP_S_MAX * 1000)


def _by_queue(text: str, wanted: str, lowest: int, highest: int) -> dict[str, int]:
    """Parse JSON with a whole number for each queue. Raise ValueError."""
    try:
        numbers = json.loads(text)
    except ValueError:
        numbers = None
    if not isinstance(numbers, dict) or not all(
        isinstance(one, int) and not isinstance(one, bool) and lowest <= one <= highest for one in numbers.values()
    ):
        raise ValueError(f"must be {wanted}, not '{text}'")
    return dict(sorted(numbers.items()))


def parse_duration_s(text: str) -> float:
    """Parse a time such as 30s, 5m or 1h; 0 needs no unit. Raise ValueError."""
    found = re.fullmatch(r"(\d+)(ms|s|m|min|h)", "".join(text.lower().split()))
    if found is not None:
        return int(found[1]) * UNITS_S[found[2]]
    if text.strip() == "0":
        return 0.0
    raise ValueError(f"must be a time such as 30s, 5m or 1h, not '{text}'")


def check_short(option: str, text: str) -> None:
    """Raise OptionError if the text is too long for a name in AMQP."""
    if len(text.encode(errors="replace")) > SHORT_MAX:
        raise OptionError(option, f"is longer than AMQP's {SHORT_MAX} octets")


def read_address(given: Given) -> Address:
    """Return the broker's address. Raise OptionError."""
    spelt_out = [name for name in ("host", "port", "virtualHost", "username", "password", "tls") if name in given]
    passwords = [name for name in ("password", "passwordFile", "passwordEnv") if name in given]
    if "url" in given and spelt_out:
        raise OptionError(spelt_out[0], "cannot be combined with url")
    if len(passwords) > 1:
        raise OptionError(passwords[1], f"cannot be given beside {passwords[0]}")
    if spelt_out or "url" not in given:
        tls = Tls() if given.boolean("tls", False) else None
        port = given.number("port", TLS_PORT if tls else PORT, 1, 65535)
        address = Address(
            read_hosts(given.text("host", "localhost"), port, "host"),
            given.text("virtualHost", "/"),
            given.text("username", "guest"),
            given.text("password", "guest"),
            tls,
            "host",
        )
    else:
        address = from_url(given.text("url"))
    check_short("virtualHost" if address.option == "host" else "url", address.virtual_host)
    if passwords and passwords[0] != "password":
        source = PasswordSource(passwords[0], given.text(passwords[0]))
        address = replace(address, password=source.read(), password_source=source)
    reconnect_timeout_s = given.read("reconnectTimeout", parse_duration_s, address.reconnect_timeout_s)
    mechanism = given.choice("authMechanism", address.mechanism, MECHANISMS)
    tls = _read_tls(given, address)
    if mechanism == "external":
        if tls is None or not tls.cert_file:
            raise OptionError("authMechanism", "external needs TLS and tls.certFile, whose certificate names the user")
        if passwords:
            raise OptionError(passwords[0], "cannot be given beside authMechanism=external")
    return replace(address, tls=tls, mechanism=mechanism, reconnect_timeout_s=reconnect_timeout_s)


def _read_tls(given: Given, address: Address) -> Tls | None:
    names = [name for name in CONNECTION if name.startswith("tls.") and name in given]
    if address.tls is None:
        if names:
            raise OptionError(names[0], "needs amqps in url, or tls=true")
        return None
    if "tls.keyFile" in given and "tls.certFile" not in given:
        raise OptionError("tls.keyFile", "needs tls.certFile")
    tls = Tls(
        given.text("tls.caFile", address.tls.ca_file),
        given.text("tls.certFile", address.tls.cert_file),
        given.text("tls.keyFile", address.tls.key_file),
        given.boolean("tls.verify", address.tls.verify),
        address.tls.server_name,
    )
    tls.context()
    return tls


def read_source(options: Mapping[str, str], is_streaming: bool) -> SourceOptions:
    """Return the options of a reader. Raise OptionError."""
    given = Given(options, (*CONNECTION, *(STREAMING if is_streaming else BATCH)))
    address = read_address(given)
    if not given.text("queue").strip():
        raise OptionError("queue", "is needed")
    is_stream = given.choice("queueType", "classic", ("classic", "quorum", "stream")) == "stream"
    for name in CLASSIC_ONLY if is_stream else STREAM_ONLY:
        if name in given:
            raise OptionError(name, f"is for {'classic and quorum queues' if is_stream else 'queueType=stream'} only")
    read_schema(options)
    queues = _read_queues(given, is_stream)
    for side in ("starting", "ending"):
        if f"{side}Offsets" in given and f"{side}Timestamp" in given:
            raise OptionError(f"{side}Timestamp", f"cannot be given beside {side}Offsets")
    if not is_streaming and "maxOffsetsPerTrigger" in given:
        raise OptionError("maxOffsetsPerTrigger", "is for streaming reads: a batch has no trigger")
    default = "latest" if is_streaming else "earliest"
    words = ("earliest", "latest")
    starting = given.read("startingOffsets", lambda text: parse_offsets(text, words, EARLIEST), default)
    ending = given.read("endingOffsets", lambda text: parse_offsets(text, ("latest",), LATEST), "latest")
    starting_times = given.read("startingTimestamp", lambda text: _parse_times_ms(text, queues), None)
    ending_times = given.read("endingTimestamp", lambda text: _parse_times_ms(text, queues), None)
    for name, by_queue in (
        ("startingOffsets", starting),
        ("endingOffsets", ending),
        ("startingTimestamp", starting_times),
        ("endingTimestamp", ending_times),
    ):
        if isinstance(by_queue, dict) and set(by_queue) != set(queues):
            raise OptionError(name, f"must name the queues {', '.join(queues)}, and no others")
    return SourceOptions(
        address,
        queues,
        is_stream,
        given.boolean("millisecondTimestamps", False),
        starting,
        starting_times,
        ending,
        ending_times,
        given.number("maxOffsetsPerTrigger", None if is_stream else QUEUE_OFFSETS_MAX, 1),
        given.number("maxBytesPerTrigger", 64 * MEGABYTE, 1),
        given.number("minPartitions", 1, 1, 10_000),
        given.number("maxRecordsPerPartition", None, 1),
        given.boolean("failOnDataLoss", True),
        given.number("prefetch", 2000 if is_stream else 0, 1, PREFETCH_MAX),
        given.number("pollTimeoutMs", 10_000, 1),
        given.number("tailProbeMs", 30, 1),
        given.number("numReaders", 1, 1, 100),
        given.text("checkpointLocation").rstrip("/"),
        given.read("idleTimeout", parse_duration_s, IDLE_TIMEOUT_S),
    )


def _read_queues(given: Given, is_stream: bool) -> tuple[str, ...]:
    if not is_stream:
        check_short("queue", given.text("queue"))
        return (given.text("queue"),)
    queues = [name.strip() for name in given.text("queue").split(",")]
    if not all(queues) or len(set(queues)) < len(queues):
        raise OptionError("queue", "has an empty name or names a queue twice")
    for name in queues:
        check_short("queue", name)
    return tuple(sorted(queues))


def read_sink(options: Mapping[str, str]) -> SinkOptions:
    """Return the options of a writer. Raise OptionError."""
    given = Given(options, (*CONNECTION, *SINK))
    for name in ("exchange", "routingKey"):
        check_short(name, given.text(name))
    return SinkOptions(
        read_address(given),
        given.text("exchange") if "exchange" in given else None,
        given.text("routingKey") if "routingKey" in given else None,
        given.boolean("mandatory", True),
        given.number("confirmTimeoutMs", 30_000, 1),
        given.number("maxInFlight", 1000, 1),
        given.number("deliveryMode", 2, 1, 2),
        given.choice("messageId", "auto", ("auto", "column", "none")),
        given.boolean("ignoreUnknownColumns", False),
        given.boolean("millisecondTimestamps", False),
        given.choice("nullBody", "error", ("error", "empty")) == "empty",
    )
