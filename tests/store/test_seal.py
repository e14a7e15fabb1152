from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqp_broker.store.seal import DamagedRecord, mended, seal, unseal


@given(st.binary(min_size=1, max_size=40), st.binary(max_size=300))
def test_a_sealed_record_is_read_as_it_was_written(key: bytes, record: bytes) -> None:
    assert bytes(unseal(memoryview(key), memoryview(seal(key, record)))) == record


@given(st.binary(min_size=1, max_size=40), st.binary(max_size=300), st.data())
def test_a_changed_bit_of_a_record_or_its_key_is_found_and_restored(
    key: bytes, record: bytes, data: st.DataObject
) -> None:
    whole = key + seal(key, record)
    at = data.draw(st.integers(0, len(whole) * 8 - 1))
    changed = bytearray(whole)
    changed[at // 8] ^= 1 << at % 8
    found, sealed = bytes(changed[: len(key)]), bytes(changed[len(key) :])
    with pytest.raises(DamagedRecord):
        unseal(found, sealed)
    assert mended(found, sealed) == (key, seal(key, record))


def test_octets_that_are_no_record_are_damaged_beyond_restoring() -> None:
    for octets in (b"", b"short", b"longer than a checksum"):
        with pytest.raises(DamagedRecord):
            unseal(b"key", octets)
        assert mended(b"key", octets) is None
