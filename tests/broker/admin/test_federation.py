"""The texts are those of RabbitMQ 4.3.6's HTTP API behind "Validation failed"."""

from __future__ import annotations

from typing import Any

import pytest

from amqp_broker.amqp.errors import InvalidParameter
from amqp_broker.broker.admin import federation

UPSTREAM = {"uri": "amqp://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, 'Key "uri" not found in f'),
        ({"uri": 5}, "uri should be list, actually was 5"),
        ({"uri": "nonsense"}, '"nonsense" not a valid URI: {{unable_to_parse_uri,no_scheme},"nonsense"}'),
        ({**UPSTREAM, "bogus": 1}, 'Unrecognised terms [{<<"bogus">>,1}] in f'),
        (
            {**UPSTREAM, "ack-mode": "x"},
            'ack-mode should be one of [<<"no-ack">>,<<"on-publish">>,<<"on-confirm">>], actually was <<"x">>',
        ),
        (
            {**UPSTREAM, "prefetch-count": "x", "max-hops": "y"},
            'max-hops should be a number, actually was <<"y">>\n'
            'prefetch-count should be a number, actually was <<"x">>',
        ),
        ({**UPSTREAM, "trust-user-id": "x"}, 'trust-user-id should be boolean, actually was <<"x">>'),
        ({**UPSTREAM, "queue": 5}, "queue should be binary, actually was 5"),
        (5, "value of f must be a dictionary: 5"),
    ],
)
def test_a_wrong_upstream_is_refused(value: Any, text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        federation.check_upstream("f", value)
    assert str(caught.value) == text


@pytest.mark.parametrize("more", [{}, {"expires": 1000, "queue": "q", "exchange": "e"}, {"uri": []}, {"max-hops": 2}])
def test_an_upstream_has_an_address_and_options(more: dict[str, Any]) -> None:
    federation.check_upstream("f", {**UPSTREAM, **more})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([{}], 'Key "upstream" not found in f'),
        ([{"upstream": "x"}, {"upstream": "x", "bogus": 1}], 'Unrecognised terms [{<<"bogus">>,1}] in f'),
    ],
)
def test_a_wrong_member_of_a_set_is_refused(value: Any, text: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        federation.check_upstream_set("f", value)
    assert str(caught.value) == text


@pytest.mark.parametrize("value", [{}, [], [{"upstream": "f", "exchange": "e"}]])
def test_a_set_has_upstreams(value: Any) -> None:
    federation.check_upstream_set("f", value)


def test_only_known_settings_are_accepted() -> None:
    federation.check_setting("local-nodename", "rabbit@here")
    with pytest.raises(InvalidParameter, match='name not recognised: <<"f">>'):
        federation.check_setting("f", {"bogus": 1})
    with pytest.raises(InvalidParameter, match="local-username should be binary, actually was 5"):
        federation.check_setting("local-username", 5)
