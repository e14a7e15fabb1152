from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.settings import readers
from amqp_broker.settings.readers import Reader, octets


@pytest.mark.parametrize(
    ("reader", "text", "value"),
    [
        (readers.number, "0", 0),
        (readers.number, "1800000", 1_800_000),
        (readers.number_or_none, "7", 7),
        (readers.number_or_none, "infinity", None),
        (readers.positive, "1", 1),
        (readers.number_or_names, "2", 2),
        (readers.number_or_names, "a, b", ["a", "b"]),
        # cuttlefish_duration.erl, with live 4.3.6's results.
        (readers.duration_ms, "1d2H", 93_600_000),
        (readers.duration_ms, "1.5s", 1500),
        (readers.duration_ms, ".5s", 500),
        (readers.duration_ms, "1s1h", 3_601_000),
        (readers.duration_ms, "1f", 1_209_600_000),
        (readers.byte_size, "10", 10),
        (readers.byte_size, "1GB", 1 << 30),
        (readers.byte_size, "1kb", 1024),
        (readers.port, "65535", 65535),
        (readers.addresses, "127.0.0.1:5673 ::1:5674 5675 :0", "127.0.0.1:5673 ::1:5674 5675 :0"),
        (readers.addresses, "", ""),
        (readers.short, "0", 0),
        # cuttlefish: a KB has 1024 octets.
        (readers.frame_size, "128KB", 131072),
        (readers.frame_size, "8192", 8192),
        (readers.frame_size, "1MB", 1048576),
        (readers.frame_size_or_unlimited, "0", readers.FRAME_MAX_HIGHEST),
        (readers.tls_versions, "", ""),
        (readers.tls_versions, "tlsv1.1 tlsv1.2", "tlsv1.1 tlsv1.2"),
        (readers.path_prefix, "", ""),
        (readers.path_prefix, "/", ""),
        (readers.path_prefix, "/a/b", "/a/b"),
        (readers.path_prefix, "a/b/", "/a/b"),
        (readers.switch, "on", True),
        (readers.switch, "off", False),
        (readers.amount, "40%", "40%"),
        (readers.amount, "", ""),
        (readers.level, "notice", "info"),
        (readers.level, "critical", "error"),
        (readers.level, "none", "critical"),
        (readers.level_or_none, "", ""),
        (readers.level_or_none, "notice", "info"),
        (readers.amount, "500Mi", "500Mi"),
        (readers.pattern, "^(a|b)$", "^(a|b)$"),
        (readers.one_of("a", "b"), "b", "b"),
    ],
)
def test_a_valid_text_is_read(reader: Reader, text: str, value: Any) -> None:
    assert reader(text) == value


@pytest.mark.parametrize(
    ("reader", "text", "wrong"),
    [
        (readers.path_prefix, "/a b", "is not a path"),
        (readers.path_prefix, "/{a}", "is not a path"),
        (readers.number, "-1", "is not a whole number"),
        (readers.number, "1.5", "is not a whole number"),
        (readers.number, "", "is not a whole number"),
        (readers.number, "9" * 5000, "is not a whole number"),
        (readers.number, "٣", "is not a whole number"),
        (readers.positive, "0", "is not above 0"),
        (readers.positive, "-1", "is not a whole number"),
        *(
            (readers.duration_ms, text, "is not a duration like 1h30m")
            for text in ("1000", "1 h", "0s", "-1s", "", ".s")
        ),
        *((readers.byte_size, text, "is not a size like 100MB") for text in ("0", "1B", "5Mi", "1GiB", "")),
        (readers.port, "65536", "is not between 0 and 65535"),
        (readers.port, "amqp", "is not a whole number"),
        (readers.addresses, "::1:1 amqp", "has 'amqp', which is neither a port nor an address and a port"),
        (readers.addresses, ":65536", "has ':65536', which is neither a port nor an address and a port"),
        (readers.short, "65536", "is not between 0 and 65535"),
        (readers.frame_size, "4095", "is not a size between 4096 and 2147483647"),
        (readers.frame_size, "4GB", "is not a size between 4096 and 2147483647"),
        (readers.switch, "trues", "is neither true nor false"),
        (readers.amount, "2 XB", "is not an amount like 2GB"),
        (readers.amount, "9" * 400, "is not an amount like 2GB"),
        (readers.frame_size, "9" * 5000, "is not a size between 4096 and 2147483647"),
        (readers.port, "9" * 5000, "is not a whole number"),
        (readers.level, "loud", "is not one of debug, info, warning, error"),
        (readers.level, "", "is not one of debug, info, warning, error"),
        (readers.pattern, "(", "is not a regular expression"),
        (readers.one_of("", "a", "b"), "c", "is not one of a, b"),
        (readers.tls_versions, "tlsv1.2 1.3", "has '1.3', which is no version of TLS like tlsv1.3"),
    ],
)
def test_an_invalid_text_is_refused(reader: Reader, text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=f"^{wrong}$"):
        reader(text)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("0.6", 600_000),
        ("40%", 400_000),
        ("1", 1_000_000),
        ("1.5", 1_500_000),
        ("2", 2),
        ("50000000", 50_000_000),
        ("50MB", 50_000_000),
        ("50mb", 50_000_000),
        ("2kB", 2000),
        ("2KiB", 2048),
        ("2k", 2048),
        ("3M", 3 << 20),
        ("3MiB", 3 << 20),
        ("2G", 2 << 30),
        ("1.5GB", 1_500_000_000),
        ("1B", 1),
    ],
)
def test_an_amount_is_a_number_of_bytes_or_a_share_of_the_whole(text: str, amount: int) -> None:
    assert octets(text, 1_000_000) == amount


def test_an_object_of_json_is_kept_as_it_is() -> None:
    assert [readers.json_object(text) for text in ("", '{"a": 1}')] == ["", '{"a": 1}']


@pytest.mark.parametrize("text", ["a", "[]", "{"])
def test_another_text_is_no_object_of_json(text: str) -> None:
    with pytest.raises(ValueError, match="is not an object of JSON"):
        readers.json_object(text)
