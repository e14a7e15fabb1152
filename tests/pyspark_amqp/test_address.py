from __future__ import annotations

import pytest

from pyspark_amqp.address import Address, Host, Tls, from_url
from pyspark_amqp.errors import OptionError


def test_a_url_is_parsed() -> None:
    assert from_url("amqp://anna:s%2Fcret@broker.example:5673/an%2Forder") == Address(
        (Host("broker.example", 5673),), "an/order", "anna", "s/cret"
    )


def test_a_url_may_name_several_hosts() -> None:
    address = from_url("amqp://anna:x@a,b:5673,[::1]:5674/orders")
    assert address.hosts == (Host("a", 5672), Host("b", 5673), Host("::1", 5674))
    assert (address.username, address.password, address.virtual_host) == ("anna", "x", "orders")
    assert str(address) == "a:5672, b:5673, [::1]:5674"


def test_a_url_may_have_rabbitmqs_parameters() -> None:
    address = from_url("amqp://h?heartbeat=5&connection_timeout=2500&channel_max=10&auth_mechanism=PLAIN")
    assert (address.heartbeat_s, address.connect_timeout_s) == (5, 2.5)
    tls = "cacertfile=ca.pem&certfile=c.pem&keyfile=k.pem&verify=verify_none&server_name_indication=broker"
    assert from_url(f"amqps://h/?{tls}").tls == Tls("ca.pem", "c.pem", "k.pem", False, "broker")


def test_missing_parts_of_a_url_have_rabbitmqs_defaults() -> None:
    assert from_url("amqp://") == Address((Host("localhost", 5672),), "/", "guest", "guest")
    assert from_url("amqp://h/") == Address((Host("h", 5672),), "/", "guest", "guest")
    assert from_url("amqps://h") == Address((Host("h", 5671),), tls=Tls())


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://h", "must be amqp://user"),
        ("h:5672", "must be amqp://user"),
        ("", "must be amqp://user"),
        ("amqp://h:x", "a host must be"),
        ("amqp://a,b:70000", "a host must be"),
        ("amqp://h/?heartbeat=often", "parameter 'heartbeat' must be a whole number, not 'often'"),
        ("amqp://h/?heartbaet=1", "unknown parameter 'heartbaet'; known are heartbeat, connection_timeout"),
        ("amqp://h/?auth_mechanism=amqplain", "parameter 'auth_mechanism' must be plain or external, not 'amqplain'"),
        ("amqp://h/?verify=verify_none", "parameter 'verify' needs amqps"),
        ("amqps://h/?verify=no", "parameter 'verify' must be verify_peer or verify_none, not 'no'"),
    ],
)
def test_an_invalid_url_is_refused_with_the_reason(url: str, problem: str) -> None:
    with pytest.raises(OptionError, match=f"option 'url': {problem}"):
        from_url(url)


def test_a_password_is_not_shown() -> None:
    assert "s3cret" not in repr(from_url("amqp://anna:s3cret@h"))
    for url in ("amqp://anna:s3cret@h?x=1", "amqp://anna:s3c/s3cret@h", "amqp://anna:s?s3cret@h", "amqp://a:s3cret#@h"):
        with pytest.raises(OptionError) as refused:
            from_url(url)
        assert "s3c" not in str(refused.value)


def test_a_missing_certificate_is_reported_with_its_option() -> None:
    for key_file in ("", "/no/such/key"):
        with pytest.raises(OptionError, match=r"tls\.caFile': cannot read '/no/such/file'"):
            Tls("/no/such/file", "/no/such/certificate", key_file).context()
    with pytest.raises(OptionError, match=r"tls\.certFile': cannot read '/no/such/file' with '/no/such/key'"):
        Tls(cert_file="/no/such/file", key_file="/no/such/key").context()
    assert not Tls(verify=False).context().check_hostname
