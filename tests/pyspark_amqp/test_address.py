from __future__ import annotations

import pytest

from pyspark_amqp.address import Address, Tls, from_url
from pyspark_amqp.errors import OptionError


def test_a_url_is_parsed() -> None:
    assert from_url("amqp://anna:s%2Fcret@broker.example:5673/an%2Forder") == Address(
        "broker.example", 5673, "an/order", "anna", "s/cret"
    )


def test_missing_parts_of_a_url_have_rabbitmqs_defaults() -> None:
    assert from_url("amqp://") == Address("localhost", 5672, "/", "guest", "guest")
    assert from_url("amqp://h/") == Address("h", 5672, "/", "guest", "guest")
    assert from_url("amqps://h") == Address("h", 5671, tls=Tls())


@pytest.mark.parametrize("url", ["http://h", "h:5672", "amqp://h:x", "amqp://h:70000", "amqp://h/?heartbeat=1", ""])
def test_an_invalid_url_is_refused_with_the_options_name(url: str) -> None:
    with pytest.raises(OptionError, match="option 'url'"):
        from_url(url)


def test_a_password_is_not_shown() -> None:
    assert "s3cret" not in repr(from_url("amqp://anna:s3cret@h"))
    with pytest.raises(OptionError) as refused:
        from_url("amqp://anna:s3cret@h?x=1")
    assert "s3cret" not in str(refused.value)


def test_a_missing_certificate_is_reported_with_its_option() -> None:
    with pytest.raises(OptionError, match=r"tls\.caFile"):
        Tls(ca_file="/no/such/file").context()
    assert not Tls(verify=False).context().check_hostname
