"""A short run of the fuzzer of decoders, and whether it sees what it looks for."""

from __future__ import annotations

import pytest

from amqp_broker.amqp.errors import FrameError
from tests.decoder_fuzz import METHOD, PROPERTIES, Decoder, Failure, fuzz, is_accepted, payloads


def test_decoders_refuse_or_keep_what_they_get() -> None:
    assert 0 < fuzz(1, 5_000) < 5_000


def test_payloads_without_a_change_are_accepted() -> None:
    found = payloads()
    assert {decoder for decoder, _ in found} == {METHOD, PROPERTIES}
    assert all(is_accepted(decoder, payload) for decoder, payload in found)


def test_another_error_than_the_decoders_own_is_a_failure() -> None:
    def crash(payload: bytes) -> bytes:
        raise IndexError("out of range")

    with pytest.raises(Failure, match="IndexError: out of range: ff"):
        is_accepted(Decoder(crash, (FrameError,)), b"\xff")


def test_a_value_that_changes_on_its_way_is_a_failure() -> None:
    with pytest.raises(Failure, match="01 becomes 0100 and then 010000"):
        is_accepted(Decoder(lambda payload: payload + b"\0", ()), b"\1")
