"""Names of the places in which transcripts differ."""

from __future__ import annotations

import pytest

from amqp_broker.conformance.comparing import fields, name_of, values_of

GET = "a1< basic.get-ok delivery_tag=1 redelivered=false routing_key='a b'"
CONTENT = "a1<     headers={a: S'x y', b: I1} body=b'it\\'s = 1'"
CLOSE = "a0< connection.close reply_code=541 reply_text=\"INTERNAL_ERROR - 'x'\" class_id=0"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (GET, "basic.get-ok"),
        (CONTENT, "content"),
        ("a< the broker closed the socket", "the broker closed the socket"),
        ("a0< protocol header b'AMQP'", "protocol header"),
        ("STOPPED: the broker has been silent on connection a", "STOPPED"),
        ("lab> puts b'1' into q", "puts"),
        ("a1> (pulls q empty)", "(pulls"),
    ],
)
def test_a_line_has_the_name_of_its_method(line: str, name: str) -> None:
    assert name_of(line) == name


def test_values_may_contain_spaces_brackets_and_quotes() -> None:
    assert values_of(CONTENT) == {"headers": "{a: S'x y', b: I1}", "body": "b'it\\'s = 1'"}
    assert values_of(CLOSE)["reply_text"] == "\"INTERNAL_ERROR - 'x'\""


@pytest.mark.parametrize(
    ("rabbitmq", "amqp_broker", "places"),
    [
        ([GET, CONTENT], [GET, CONTENT], set()),
        ([GET], [GET.replace("false", "true")], {"basic.get-ok redelivered"}),
        ([CONTENT], [CONTENT.replace(" body", " delivery_mode=1 body")], {"content delivery_mode"}),
        ([GET, CONTENT], [GET], {"content: not here"}),
        ([GET], [CLOSE], {"basic.get-ok: not here", "connection.close: only here"}),
        (["a0< protocol header b'1'"], ["a0< protocol header b'2'"], {"protocol header"}),
        ([GET, "a1< basic.cancel"], ["a1< basic.cancel", GET], {"basic.cancel: not here", "basic.cancel: only here"}),
    ],
)
def test_transcripts_differ_in_methods_and_fields(
    rabbitmq: list[str], amqp_broker: list[str], places: set[str]
) -> None:
    assert fields("area/name", rabbitmq, amqp_broker) == places
