from __future__ import annotations

import inspect

import pytest
from pamqp.exceptions import CLASS_MAPPING, AMQPHardError, AMQPSoftError

from amqp_broker.amqp import errors
from amqp_broker.amqp.errors import (
    AMQPError,
    ChannelError,
    ConnectionError_,
    Disconnect,
    FrameError,
    InternalError,
    LoginRefused,
    NotFound,
)

WITH_CODE = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, AMQPError) and kind not in (AMQPError, ChannelError, ConnectionError_)
]


@pytest.mark.parametrize("kind", WITH_CODE)
def test_codes_and_names_are_those_of_the_specification(kind: type[AMQPError]) -> None:
    name: str = vars(CLASS_MAPPING[kind.code])["name"]
    assert name.replace("-", "_") == kind.name


@pytest.mark.parametrize("kind", [kind for kind in WITH_CODE if kind is not LoginRefused])
def test_soft_errors_close_a_channel_and_hard_ones_the_connection(kind: type[AMQPError]) -> None:
    family = AMQPSoftError if issubclass(kind, ChannelError) else AMQPHardError
    assert issubclass(CLASS_MAPPING[kind.code], family)


def test_a_refused_login_closes_the_connection_with_the_code_of_a_soft_error() -> None:
    assert issubclass(LoginRefused, ConnectionError_)
    assert issubclass(CLASS_MAPPING[LoginRefused.code], AMQPSoftError)


def test_disconnect_is_no_amqp_error_because_no_frame_tells_it() -> None:
    assert not issubclass(Disconnect, AMQPError)


def test_a_reply_text_is_the_name_and_the_explanation() -> None:
    assert NotFound("no queue 'q' in vhost '/'").reply_text == "NOT_FOUND - no queue 'q' in vhost '/'"


def test_a_reply_text_of_255_octets_stays_whole() -> None:
    text = NotFound("x" * (255 - len("NOT_FOUND - "))).reply_text
    assert len(text) == 255
    assert text.endswith("x")


def test_a_longer_reply_text_is_cut_to_255_octets_and_says_so() -> None:
    text = NotFound("x" * 256).reply_text
    assert len(text) == 255
    assert text.endswith("x...")


def test_a_reply_text_is_not_cut_within_a_character() -> None:
    encoded = NotFound("x" + "é" * 200).reply_text.encode()
    assert len(encoded) <= 255
    assert encoded.decode().endswith("é...")


def test_a_reply_text_with_octets_that_are_no_utf_8_can_be_sent() -> None:
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    assert NotFound(f"no queue '{name}'").reply_text == "NOT_FOUND - no queue '??'"


def test_an_error_is_about_the_method_being_handled_unless_it_says_otherwise() -> None:
    assert FrameError("").method_id is None
    assert FrameError("", method_id=0).method_id == 0


def test_a_reply_text_without_an_explanation_is_the_name() -> None:
    assert InternalError("").reply_text == "INTERNAL_ERROR"
