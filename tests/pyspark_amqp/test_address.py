from __future__ import annotations

import pytest

from pyspark_amqp.address import Address, Tls, from_url
from pyspark_amqp.errors import OptionError


def test_a_url_says_who_connects_where() -> None:
    assert from_url("amqp://anna:s%2Fcret@broker.example:5673/an%2Forder") == Address(
        "broker.example", 5673, "an/order", "anna", "s/cret"
    )


def test_what_a_url_leaves_out_is_rabbitmqs_default() -> None:
    assert from_url("amqp://") == Address("localhost", 5672, "/", "guest", "guest")
    assert from_url("amqp://h/") == Address("h", 5672, "/", "guest", "guest")
    assert from_url("amqps://h") == Address("h", 5671, tls=Tls())


@pytest.mark.parametrize("url", ["http://h", "h:5672", "amqp://h:x", "amqp://h:70000", "amqp://h/?heartbeat=1", ""])
def test_what_is_no_url_is_refused_by_the_options_name(url: str) -> None:
    with pytest.raises(OptionError, match="option 'url'"):
        from_url(url)


def test_a_password_is_not_shown() -> None:
    assert "s3cret" not in repr(from_url("amqp://anna:s3cret@h"))
    with pytest.raises(OptionError) as refused:
        from_url("amqp://anna:s3cret@h?x=1")
    assert "s3cret" not in str(refused.value)


def test_a_certificate_that_is_not_there_is_told_by_its_option() -> None:
    with pytest.raises(OptionError, match=r"tls\.caFile"):
        Tls(ca_file="/no/such/file").context()
    assert not Tls(verify=False).context().check_hostname
